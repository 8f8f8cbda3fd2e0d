//! Committing a round: everything a turn changes, in one transaction, under the instance's lock.

use duroxide_core::Timestamp;
use duroxide_provider::{
    ExecutionMetadata,
    store::{Answer, ApplyError, MessageRow, PreparedExecution, PreparedRound, StoreFailure},
};

use crate::{
    SqliteEngine,
    instances::{CONTINUED_AS_NEW, InstanceRow, RUNNING},
};

impl SqliteEngine {
    /// Checks everything, then writes. Nothing can be refused after the first write.
    pub(crate) fn commit_round(
        &mut self,
        round: &PreparedRound,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let mut row = self.held_instance(&round.token, handed_in)?;
        for part in parts(round) {
            self.check_new_events(&row, part.execution_id, &part.events)?;
        }
        self.consume_batch(&row)?;
        let before = row.clone();
        release(&mut row);
        self.commit_part(&mut row, &round.execution, 1)?;
        if let Some(next) = &round.next {
            self.commit_part(&mut row, next, 0)?;
        }
        let pinned = parts(round).any(|part| part.metadata.pinned_duroxide_version.is_some());
        if pinned || !same_handler(&row, &before) {
            row.route = None;
        }
        self.write_round(&mut row, &before)?;
        for part in parts(round) {
            self.hand_out(&mut row, part)?;
        }
        self.cancel_work(&row, round)?;
        self.settle(&row)?;
        Ok(Answer::RoundCommitted { instance: row.instance_id })
    }

    /// Stores what a round did to one execution. An instance that has neither name nor events stays a mailbox.
    fn commit_part(
        &mut self,
        row: &mut InstanceRow,
        part: &PreparedExecution,
        turns: u64,
    ) -> Result<(), StoreFailure> {
        describe(row, &part.metadata, self.now);
        if row.known || !part.events.is_empty() {
            let mut execution = self.append_events(row, part.execution_id, &part.events, &part.changes)?;
            execution.describe(&part.metadata, self.now);
            execution.turns += turns;
            self.write_execution(row.id, part.execution_id, &execution)?;
            if part.metadata.status.is_some() && execution.status != RUNNING {
                self.merge_kv(row.id)?;
            }
            if part.execution_id == row.execution_id {
                row.status = Some(execution.status);
            }
        }
        row.updated_at = self.now;
        Ok(())
    }

    /// Writes the instance, free again. If messages are left, it takes its new place in the line now, before those
    /// that this round wakes.
    fn write_round(&mut self, row: &mut InstanceRow, before: &InstanceRow) -> Result<(), StoreFailure> {
        row.suspect = row.suspect && self.has_attempted(row.id)?;
        self.write_instance(row, before)?;
        if self.has_messages(row.id)? { self.stand_in_line(row) } else { Ok(()) }
    }

    fn stand_in_line(&mut self, row: &mut InstanceRow) -> Result<(), StoreFailure> {
        if row.ready.is_none() && self.is_ready(row)? {
            row.ready = Some(self.sequence.take());
        }
        Ok(())
    }

    fn hand_out(&mut self, row: &mut InstanceRow, part: &PreparedExecution) -> Result<(), StoreFailure> {
        for activity in &part.activities {
            if activity.instance == row.instance_id {
                self.enqueue_activity_of(row.id, activity)?;
            } else {
                self.enqueue_activity(activity)?;
            }
        }
        for message in &part.messages {
            self.send(row, message)?;
        }
        Ok(())
    }

    fn send(&mut self, row: &mut InstanceRow, message: &MessageRow) -> Result<(), StoreFailure> {
        if message.instance != row.instance_id {
            return self.enqueue(message);
        }
        self.insert_message(row.id, message)?;
        if self.is_due(message) { self.stand_in_line(row) } else { Ok(()) }
    }

    /// Deletes cancelled work, after the inserts: what a round schedules and cancels is never handed out.
    fn cancel_work(&mut self, row: &InstanceRow, round: &PreparedRound) -> Result<(), StoreFailure> {
        for cancelled in &round.cancelled_activities {
            self.cancel_activity(cancelled)?;
        }
        for cancelled in &round.cancelled_timers {
            if cancelled.instance == row.instance_id {
                self.cancel_timer(row.id, cancelled.execution_id, cancelled.timer_id)?;
            } else if let Some(other) = self.instance_named(&cancelled.instance)? {
                self.cancel_timer(other.id, cancelled.execution_id, cancelled.timer_id)?;
                self.settle(&other)?;
            }
        }
        Ok(())
    }
}

fn parts(round: &PreparedRound) -> impl Iterator<Item = &PreparedExecution> {
    std::iter::once(&round.execution).chain(&round.next)
}

/// Whether a round left everything as it was that filters look at, the pin aside. While an instance waits for its
/// successor, its route is that of the `ContinueAsNew`.
fn same_handler(after: &InstanceRow, before: &InstanceRow) -> bool {
    let waits = |row: &InstanceRow| row.status.as_deref() == Some(CONTINUED_AS_NEW);
    before.known
        && after.name == before.name
        && after.version == before.version
        && after.execution_id == before.execution_id
        && !waits(after)
        && !waits(before)
}

fn release(row: &mut InstanceRow) {
    row.lock = None;
    row.batch = None;
    row.ready = None;
}

/// Takes name and version; both are needed to make an instance of a mailbox, and only then the parent counts.
fn describe(row: &mut InstanceRow, metadata: &ExecutionMetadata, now: Timestamp) {
    let (name, version) = (&metadata.orchestration_name, &metadata.orchestration_version);
    if row.name.is_none() {
        if name.is_none() || version.is_none() {
            return;
        }
        row.known = true;
        row.parent.clone_from(&metadata.parent_instance_id);
        row.created_at = now;
    }
    if name.is_some() {
        row.name.clone_from(name);
    }
    if version.is_some() {
        row.version.clone_from(version);
    }
}
