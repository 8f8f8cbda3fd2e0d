//! [`run_round`]: collects a round in a closure and commits it.

use duroxide_core::{Event, WorkItem};

use crate::{
    ExecutionMetadata, NextExecution, OrchestrationItem, Provider, ProviderError, Round,
    ScheduledActivityIdentifier, ScheduledTimerIdentifier,
};

const OPERATION: &str = "run_round";

/// A locked message of an instance, with the lock token that acknowledges it.
///
/// A fetch locks all visible messages of an instance under one token, so all items of one claim have the same token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DequeuedItem {
    /// The message.
    pub item: WorkItem,
    /// The token of the lock that holds it.
    pub token: String,
}

impl DequeuedItem {
    /// The messages of a fetched instance, in order.
    pub fn batch(fetched: &OrchestrationItem, token: &str) -> Vec<Self> {
        fetched.messages.iter().map(|item| Self { item: item.clone(), token: token.to_owned() }).collect()
    }
}

/// Collects a [`Round`] while the closure of [`run_round`] runs. Nothing is stored before the closure has returned.
#[derive(Debug)]
pub struct OpenRound {
    lock_token: String,
    execution_id: Option<u64>,
    acknowledged: bool,
    round: Round,
}

impl OpenRound {
    fn new(lock_token: &str) -> Self {
        let round = Round::default();
        Self { lock_token: lock_token.to_owned(), execution_id: None, acknowledged: false, round }
    }

    /// Names the execution of this round. [`Self::append`] does it too; only a round without events needs this call.
    ///
    /// # Errors
    /// If the round already belongs to another execution.
    pub fn set_execution(&mut self, execution_id: u64) -> Result<(), ProviderError> {
        match self.execution_id.replace(execution_id) {
            Some(other) if other != execution_id => {
                self.execution_id = Some(other);
                Err(refused(format!("the round is for execution {other}, not for execution {execution_id}")))
            }
            _ => Ok(()),
        }
    }

    /// Appends events to the history.
    ///
    /// # Errors
    /// If an event belongs to another execution than the round.
    pub fn append(&mut self, events: impl IntoIterator<Item = Event>) -> Result<(), ProviderError> {
        for event in events {
            self.set_execution(event.execution_id)?;
            self.round.history_delta.push(event);
        }
        Ok(())
    }

    /// Enqueues work: activities in the worker queue, everything else in the orchestrator queue.
    pub fn enqueue(&mut self, items: impl IntoIterator<Item = WorkItem>) {
        for item in items {
            let is_activity = matches!(item, WorkItem::ActivityExecute { .. });
            let queue =
                if is_activity { &mut self.round.worker_items } else { &mut self.round.orchestrator_items };
            queue.push(item);
        }
    }

    /// Sets status, output, name, version, parent and pinned version of the execution.
    pub fn set_metadata(&mut self, metadata: ExecutionMetadata) {
        self.round.metadata = metadata;
    }

    /// Deletes a queued or running activity.
    pub fn cancel_activity(&mut self, activity: ScheduledActivityIdentifier) {
        self.round.cancelled_activities.push(activity);
    }

    /// Deletes a timer that has not fired.
    pub fn cancel_timer(&mut self, timer: ScheduledTimerIdentifier) {
        self.round.cancelled_timers.push(timer);
    }

    /// Starts the next execution together with the end of this one.
    pub fn continue_as(&mut self, next: NextExecution) {
        self.round.next_execution = Some(next);
    }

    /// Acknowledges the locked messages: the commit removes all messages that the token holds. One call is enough for
    /// all of them, and it takes effect only with the commit.
    ///
    /// # Errors
    /// If the round is committed under another token.
    pub fn ack(&mut self, token: &str) -> Result<(), ProviderError> {
        if token != self.lock_token {
            return Err(refused("the token belongs to another lock"));
        }
        self.acknowledged = true;
        Ok(())
    }

    fn close(self) -> Result<Round, ProviderError> {
        if !self.acknowledged {
            return Err(refused("the round did not acknowledge its messages"));
        }
        let execution_id = self.execution_id.ok_or_else(|| refused("the round names no execution"))?;
        Ok(Round { execution_id, ..self.round })
    }
}

/// Collects appends, enqueues and acknowledgements in a closure, and commits them as one [`Round`].
///
/// `lock_token` is the token of a fetched instance. If the closure returns an error, nothing is committed, the messages
/// stay locked, and the caller abandons them. The closure must call [`OpenRound::ack`], because a commit always removes
/// the locked messages: a round that forgot to is refused and commits nothing.
///
/// # Errors
/// The closure's error, or that of [`Provider::commit_round`].
pub async fn run_round<P, T>(
    provider: &P,
    lock_token: &str,
    collect: impl AsyncFnOnce(&mut OpenRound) -> Result<T, ProviderError>,
) -> Result<T, ProviderError>
where
    P: Provider + ?Sized,
{
    let mut round = OpenRound::new(lock_token);
    let value = collect(&mut round).await?;
    provider.commit_round(lock_token, round.close()?).await?;
    Ok(value)
}

fn refused(message: impl Into<String>) -> ProviderError {
    ProviderError::permanent(OPERATION, message)
}
