//! Claiming instances: those that have been ready longest, with their visible messages.

mod new_instances;

use std::{collections::BTreeSet, sync::Arc};

use duroxide_core::{Event, EventKind, INITIAL_EXECUTION_ID, WorkItem};

pub(super) use self::new_instances::NewInstances;
use super::{
    ClaimBound, Extent, InstanceChange, InstanceLock, InstanceRow, Lease, Loaded, QueuedMessage, Rows, Rules,
    Tables, VisibleMessages, readiness::start_target,
};
use crate::{
    OrchestrationClaim, StorePosition,
    store::{
        Claimed, DeadLetterNote, DeadLetterReason, HeldBack, HeldBackBy, InstanceFetch, MessageKind,
        StartTarget,
        bounds::{CLAIM_BYTES_MAX, CLAIM_MESSAGES_MAX, UNDECODABLE_HIDDEN_FOR},
        lock_token, sort_for_delivery,
    },
};

/// The version a claim shows if the start asked for none.
const UNKNOWN_VERSION: &str = "unknown";

/// The result of claiming one candidate.
enum Candidate {
    Claimed,
    /// No message of it could be claimed. Undecodable messages were hidden; if others are visible behind them, the
    /// instance is ready again.
    Unfit,
    /// No instance has this id.
    Gone,
    /// The instance may be poison and no slot is free: the claim stops in front of it.
    MustWait,
}

/// The decodable messages of a claim, in the order of delivery, with their items.
struct ClaimedMessages {
    messages: Vec<QueuedMessage>,
    items: Vec<WorkItem>,
    /// Whether nothing else was visible.
    are_all: bool,
}

impl<T: Tables> Rules<T> {
    /// Locks ready instances with their messages, those that have been ready longest first.
    pub(super) fn claim_ready_instances(
        &mut self,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Rows<Claimed<OrchestrationClaim>> {
        // Once for each claim: mailboxes that this claim makes stray are left to the next.
        let mut claimed = Claimed { dead_letters: self.dead_letter_strays()?, ..Claimed::default() };
        let mut gone = BTreeSet::new();
        while claimed.items.len() < fetch.max {
            let wanted = fetch.max - claimed.items.len();
            let mut candidates = match &fetch.only {
                None => self.ready_instances(fetch, wanted, &mut claimed.held_back)?,
                Some(only) => self.ready_instance(only)?,
            };
            let were_all = candidates.len() <= wanted;
            candidates.truncate(wanted);
            candidates.retain(|number| !gone.contains(number));
            let mut look_again = !were_all && !candidates.is_empty();
            claimed.items.reserve_exact(candidates.len());
            for number in candidates {
                match self.claim_instance(number, fetch, nonce, &mut claimed)? {
                    Candidate::Claimed => {}
                    Candidate::Unfit => look_again = true,
                    Candidate::Gone => drop(gone.insert(number)),
                    Candidate::MustWait => return Ok(claimed),
                }
            }
            claimed.took_all = !look_again;
            if !look_again {
                break;
            }
        }
        Ok(claimed)
    }

    /// Ready instances that the fetch accepts, longest ready first, and one more than are wanted if there are more.
    fn ready_instances(
        &mut self,
        fetch: &InstanceFetch,
        wanted: usize,
        held_back: &mut HeldBack,
    ) -> Rows<Vec<u64>> {
        // Each pass skips the same items again, so only the last pass counts.
        *held_back = HeldBack::default();
        let limit = wanted.saturating_add(1);
        let mut found = Vec::new();
        for id in self.tables.ready_routes()? {
            let by = match self.tables.route(id)? {
                Some(route) => {
                    fetch.holds_back(route.name.as_deref(), route.version.as_deref(), route.pinned)
                }
                None => Some(HeldBackBy::Orchestration),
            };
            match by {
                Some(by) => held_back.count(by, self.tables.count_ready_on_route(id, fetch.max)?),
                None => found.extend(self.tables.ready_on_route(id, limit)?),
            }
        }
        // A process that stores many starts would otherwise claim all of them, while other processes have nothing to do.
        let left: BTreeSet<u64> = self.left_to_others().collect();
        found.retain(|(_, number)| !left.contains(number));
        found.sort_unstable();
        found.truncate(limit);
        Ok(found.into_iter().map(|(_, number)| number).collect())
    }

    /// The instance of this id, if it is ready.
    fn ready_instance(&mut self, id: &str) -> Rows<Vec<u64>> {
        let row = self.tables.instance_named(id)?;
        let ready = row.filter(InstanceRow::is_ready);
        Ok(ready.map(|row| row.number).into_iter().collect())
    }

    /// Locks one candidate and adds its claim to those `claimed` before it.
    fn claim_instance(
        &mut self,
        number: u64,
        fetch: &InstanceFetch,
        nonce: u128,
        claimed: &mut Claimed<OrchestrationClaim>,
    ) -> Rows<Candidate> {
        let Some(mut loaded) = self.tables.load(number)? else { return Ok(Candidate::Gone) };
        // A lock that is left on a ready instance has ended: its turn may have crashed its process.
        let may_be_poison = loaded.row.may_be_poison || loaded.row.lock.is_some();
        if may_be_poison && claimed.items.len() >= fetch.free_slots {
            return Ok(Candidate::MustWait);
        }
        let taken = self.messages_of(&loaded.row, fetch.whole_mailbox, &mut claimed.dead_letters)?;
        if !loaded.row.can_run_with(&taken.messages) {
            self.settle_at_the_back(loaded.row, InstanceChange::Readiness)?;
            return Ok(Candidate::Unfit);
        }
        loaded.row.may_be_poison = may_be_poison;
        self.lock_instance(&mut loaded.row, &taken, fetch, nonce)?;
        if !may_be_poison && self.may_run_early(number, &taken) {
            claimed.early.push(claimed.items.len());
        }
        claimed.items.push(self.describe_claim(&loaded, taken)?);
        self.tables.store(loaded, InstanceChange::Lock)?;
        Ok(Candidate::Claimed)
    }

    /// 24.12: whether the turn of a claim may run before the claim is committed: see [`EarlyTurns`](crate::store::EarlyTurns).
    fn may_run_early(&mut self, number: u64, taken: &ClaimedMessages) -> bool {
        let is_early = |message: &QueuedMessage| self.early_messages.contains(&message.number);
        taken.messages.iter().all(is_early)
            && !self.rounds_of.contains(&number)
            && self.tables.is_at_hand(number)
    }

    /// The messages that a claim takes. Those that cannot be decoded are counted, hidden and left out, or moved to the
    /// dead letters once they were tried too often (16.10).
    fn messages_of(
        &mut self,
        row: &InstanceRow,
        whole_mailbox: bool,
        notes: &mut Vec<DeadLetterNote>,
    ) -> Rows<ClaimedMessages> {
        let VisibleMessages { messages: visible, are_all } = self.visible_messages(row, whole_mailbox)?;
        let (mut messages, mut items) =
            (Vec::with_capacity(visible.len()), Vec::with_capacity(visible.len()));
        for mut message in visible {
            let decoded = match message.item.take() {
                Some(item) => Ok(Arc::unwrap_or_clone(item)),
                None => serde_json::from_str(&message.data),
            };
            match decoded {
                Ok(item) => {
                    messages.push(message);
                    items.push(item);
                }
                Err(error) => notes.extend(self.hide_undecodable(row, message, error.to_string())?),
            }
        }
        Ok(ClaimedMessages { messages, items, are_all })
    }

    /// All visible messages, or a bounded part of them and with it the first visible starts, without which an instance
    /// that does not exist yet could not take the others. The attempt of a lock that was lost is added.
    fn visible_messages(&mut self, row: &InstanceRow, whole_mailbox: bool) -> Rows<VisibleMessages> {
        let bound = if whole_mailbox {
            ClaimBound { messages: usize::MAX, bytes: usize::MAX }
        } else {
            ClaimBound { messages: CLAIM_MESSAGES_MAX, bytes: CLAIM_BYTES_MAX }
        };
        let mut visible = self.tables.visible_messages(row.number, self.now, bound)?;
        if !visible.are_all {
            let last = visible.messages.last().map(QueuedMessage::position);
            for kind in [MessageKind::Start, MessageKind::ContinueAsNew] {
                let start = self.tables.first_visible_start(row.number, kind, self.now)?;
                visible.messages.extend(start.filter(|start| last < Some(start.position())));
            }
        }
        sort_for_delivery(&mut visible.messages, QueuedMessage::arrival);
        if let Some(lost) = &row.lock {
            for message in visible.messages.iter_mut().filter(|message| lost.extent.holds(message)) {
                message.attempts = message.attempts.saturating_add(1);
            }
        }
        Ok(visible)
    }

    /// Counts and hides a message that cannot be decoded; after too many attempts it becomes a dead letter. It is no
    /// queue message any more: nothing waits behind it.
    fn hide_undecodable(
        &mut self,
        row: &InstanceRow,
        mut message: QueuedMessage,
        error: String,
    ) -> Rows<Option<DeadLetterNote>> {
        message.attempts = message.attempts.saturating_add(1);
        if message.kind == MessageKind::Queue {
            message.kind = MessageKind::Other;
        }
        if message.attempts > self.max_attempts {
            return self
                .dead_letter_message(row, message, DeadLetterReason::Undeserializable { error })
                .map(Some);
        }
        message.hidden_until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
        message.mark = None;
        self.tables.update_message(row.number, &message)?;
        Ok(None)
    }

    /// Locks an instance and with it the messages that its turn gets. A lock that was lost is counted.
    fn lock_instance(
        &mut self,
        row: &mut InstanceRow,
        taken: &ClaimedMessages,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Rows<()> {
        row.losses = row.losses.claimed_again(row.lock.is_some());
        if let Some(lost) = &row.lock {
            self.tables.count_attempt(row.number, &lost.extent)?;
        }
        let extent = if taken.are_all {
            let up_to = taken.messages.iter().map(|message| message.number).max().unwrap_or_default();
            Extent::Visible { at: self.now, up_to }
        } else {
            let mark = self.tables.next_number()?;
            self.tables.mark_messages(row.number, &taken.messages, mark)?;
            Extent::Marked { mark }
        };
        let lease = Lease {
            token: lock_token(row.number, nonce),
            until: self.now.saturating_add(fetch.lock_timeout),
            length: fetch.lock_timeout,
            node: fetch.node,
        };
        row.lock(InstanceLock { lease, extent });
        Ok(())
    }

    fn describe_claim(&mut self, loaded: &Loaded, taken: ClaimedMessages) -> Rows<OrchestrationClaim> {
        let Loaded { row, execution } = loaded;
        let (name, version) = match &row.name {
            Some(name) => (name.clone(), row.version.clone()),
            None => self.identity_of_unnamed(row, &taken.items)?,
        };
        let attempts = taken.messages.iter().map(|message| message.attempts).max().unwrap_or(0);
        Ok(OrchestrationClaim {
            instance: row.id.clone(),
            orchestration_name: name,
            version: version.unwrap_or_else(|| UNKNOWN_VERSION.to_owned()),
            execution_id: if row.known { row.execution_id } else { INITIAL_EXECUTION_ID },
            messages: taken.items,
            lock_token: row.lock.as_ref().map(|lock| lock.lease.token.clone()).unwrap_or_default(),
            attempt_count: attempts.saturating_add(1),
            losses: Some(row.losses),
            position: Some(StorePosition {
                incarnation: row.number,
                last_event_id: execution.as_ref().map_or(0, |execution| execution.last_event_id),
                turns: execution.as_ref().map_or(0, |execution| execution.turns),
            }),
            loaded: None,
        })
    }

    /// Name and version of an instance that was never named: of its execution's first event, or of its start.
    fn identity_of_unnamed(
        &mut self,
        row: &InstanceRow,
        items: &[WorkItem],
    ) -> Rows<(String, Option<String>)> {
        if !row.known {
            return Ok(identity_of_start(items).unwrap_or_default());
        }
        let first = self.tables.first_event(row.number, row.execution_id)?;
        Ok(identity_in_event(first.as_deref()))
    }

    /// Makes dead letters of the messages of mailboxes that hold only queue messages: they wait for no start (16.11).
    fn dead_letter_strays(&mut self) -> Rows<Vec<DeadLetterNote>> {
        let mut notes = Vec::new();
        for number in self.tables.stray_instances()? {
            let Some(row) = self.tables.instance(number)? else { continue };
            let messages = self.tables.messages_waiting_since(number, duroxide_core::Timestamp::MAX)?;
            for message in messages {
                notes.push(self.dead_letter_message(&row, message, DeadLetterReason::NoInstance)?);
            }
            self.settle_at_the_back(row, InstanceChange::Readiness)?;
        }
        Ok(notes)
    }
}

/// Name and version of an instance that was never named, out of the first event of its execution. Both are empty without such an
/// event, or if it does not begin an execution.
pub fn identity_in_event(first: Option<&str>) -> (String, Option<String>) {
    let event = first.and_then(|data| serde_json::from_str::<Event>(data).ok());
    let Some(EventKind::OrchestrationStarted { name, version, .. }) = event.map(|event| event.kind) else {
        return (String::new(), None);
    };
    (name, Some(version))
}

/// A `ContinueAsNew` outranks a client's start in any order (2.3).
fn identity_of_start(items: &[WorkItem]) -> Option<(String, Option<String>)> {
    let continued = items.iter().find(|item| matches!(item, WorkItem::ContinueAsNew { .. }));
    let start = continued.or_else(|| items.iter().find(|item| start_target(item).is_some()))?;
    start_target(start).map(|StartTarget { name, version }| (name, version))
}
