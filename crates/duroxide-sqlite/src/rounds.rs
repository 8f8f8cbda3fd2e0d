//! Committing a round: everything a turn changes, in one transaction, under the instance's lock.

use duroxide_core::Timestamp;
use duroxide_provider::{
    ExecutionMetadata, Losses,
    store::{Answer, ApplyError, MessageRow, PreparedExecution, PreparedRound, StoreFailure},
};

use crate::{
    SqliteEngine,
    executions::ExecutionRow,
    instances::{Changed, InstanceRow, Kept, Place, RUNNING},
};

impl SqliteEngine {
    /// Checks everything, then writes. Nothing can be refused after the first write.
    pub(crate) fn commit_round(
        &mut self,
        round: &PreparedRound,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let mut held = self.held_execution(&round.token, handed_in)?;
        let first = if round.execution.execution_id == held.row.execution_id {
            held.execution.take()
        } else {
            self.stored(&held.row, round.execution.execution_id)?
        };
        self.check_part(&held.row, &round.execution, first.as_ref())?;
        if let Some(next) = &round.next {
            let stored = self.stored(&held.row, next.execution_id)?;
            self.check_part(&held.row, next, stored.as_ref())?;
        }
        let messages_left = self.consume_batch(&mut held)?;
        let mut effect = self.commit_part(&mut held, &round.execution, first, 1)?;
        if let Some(next) = &round.next {
            let stored = self.stored(&held.row, next.execution_id)?;
            let further = self.commit_part(&mut held, next, stored, 0)?;
            effect.changed = effect.changed.max(further.changed);
            effect.rerouted |= further.rerouted;
        }
        self.write_round(held, round, effect, messages_left)
    }

    /// The stored row of an execution. Above the instance's own there is none.
    fn stored(&self, row: &InstanceRow, execution_id: u64) -> Result<Option<ExecutionRow>, StoreFailure> {
        if execution_id > row.execution_id { Ok(None) } else { self.execution(row.id, execution_id) }
    }

    fn check_part(
        &self,
        row: &InstanceRow,
        part: &PreparedExecution,
        stored: Option<&ExecutionRow>,
    ) -> Result<(), ApplyError> {
        let last = stored.map_or(0, |execution| execution.last_event_id);
        self.check_new_events(row, part.execution_id, last, &part.events)
    }

    /// Stores what a round did to one execution. An instance that has neither name nor events stays a mailbox.
    fn commit_part(
        &mut self,
        held: &mut Kept,
        part: &PreparedExecution,
        stored: Option<ExecutionRow>,
        turns: u64,
    ) -> Result<Effect, StoreFailure> {
        held.note_changes(&part.changes);
        let row = &mut held.row;
        let before = (row.known, row.execution_id, row.waits_for_successor());
        let renamed = describe(row, &part.metadata, self.now);
        let mut changed = Changed::Nothing;
        if row.known || !part.events.is_empty() {
            let mut execution =
                self.append_events(row, part.execution_id, stored, &part.events, &part.changes)?;
            execution.describe(&part.metadata, self.now);
            execution.turns += turns;
            self.write_execution(row.id, part.execution_id, &execution)?;
            if part.metadata.status.is_some() && execution.status != RUNNING && !held.kv_unchanged {
                self.merge_kv(row.id)?;
            }
            if part.execution_id == row.execution_id {
                if row.status.as_ref() != Some(&execution.status) {
                    row.status = Some(execution.status.clone());
                    changed = Changed::Status;
                }
                held.execution = Some(execution);
            }
        }
        let pinned = part.metadata.pinned_duroxide_version.is_some();
        let after = (row.known, row.execution_id, row.waits_for_successor());
        if renamed || before.0 != after.0 {
            changed = Changed::Description;
        }
        row.updated_at = self.now;
        Ok(Effect { changed, rerouted: renamed || pinned || before != after || row.waits_for_successor() })
    }

    /// Writes the instance, free again, once everything else is written. If messages are left, it takes its new place
    /// in the line before those that this round wakes.
    fn write_round(
        &mut self,
        mut held: Kept,
        round: &PreparedRound,
        effect: Effect,
        messages_left: bool,
    ) -> Result<Answer, ApplyError> {
        let ended = held.ended_by(round);
        let row = &mut held.row;
        row.lock = None;
        row.batch = None;
        row.ready = None;
        if effect.rerouted {
            row.route = None;
        }
        row.suspect = row.suspect && messages_left && self.has_attempted(row.id)?;
        if !row.suspect {
            row.losses = Losses::default();
        }
        if messages_left {
            self.stand_in_line(row)?;
        }
        let mut sent = false;
        for part in parts(round) {
            sent |= self.hand_out(row, held.parent, part)?;
        }
        self.cancel_work(row, round)?;
        sent |= self.stop_work(row, round)?;
        if row.known && row.route.is_none() && !row.waits_for_successor() {
            // Whatever wakes it next finds its route.
            row.route = Some(self.route_of_execution(row, held.execution.as_ref())?);
        }
        let place = if row.known && !messages_left && !sent {
            Some(Place { route: row.route, ready: None, wake_at: None })
        } else {
            self.place(row)?
        };
        let answer = Answer::RoundCommitted { instance: row.instance_id.clone(), ended };
        match place {
            Some(place) => {
                self.write_instance(row, place, effect.changed)?;
                held.stand_at(place);
                held.waiting = held.waiting.filter(|_| !sent);
                self.keep_running(held);
            }
            None => self.delete_instance_row(row.id)?,
        }
        Ok(answer)
    }

    /// One that ended is seldom asked for again.
    fn keep_running(&mut self, held: Kept) {
        if held.execution.as_ref().is_some_and(|execution| execution.status == RUNNING) {
            self.kept.keep(held);
        }
    }

    fn stand_in_line(&mut self, row: &mut InstanceRow) -> Result<(), StoreFailure> {
        if row.ready.is_none() && self.is_ready(row)? {
            row.ready = Some(self.sequence.take());
        }
        Ok(())
    }

    /// Hands out what a round schedules. Returns whether any of it went to the instance's own mailbox.
    fn hand_out(
        &mut self,
        row: &mut InstanceRow,
        parent: Option<i64>,
        part: &PreparedExecution,
    ) -> Result<bool, StoreFailure> {
        for activity in &part.activities {
            if activity.instance == row.instance_id {
                self.enqueue_activity_of(row.id, activity)?;
            } else {
                self.enqueue_activity(activity)?;
            }
        }
        let mut sent = false;
        for message in &part.messages {
            if message.instance == row.instance_id {
                self.send_to_itself(row, message)?;
                sent = true;
            } else {
                self.send(row, parent, message)?;
            }
        }
        Ok(sent)
    }

    /// Sends a message to another instance, which is not looked up if it is the parent and that is known.
    fn send(
        &mut self,
        row: &InstanceRow,
        parent: Option<i64>,
        message: &MessageRow,
    ) -> Result<(), StoreFailure> {
        match parent.and_then(|id| self.kept.named(id, &message.instance)) {
            Some(parent) => self.enqueue_to(&parent, message),
            None => self.enqueue_from(Some(row.id), message).map(|_| ()),
        }
    }

    fn send_to_itself(&mut self, row: &mut InstanceRow, message: &MessageRow) -> Result<(), StoreFailure> {
        self.insert_message(row.id, message)?;
        if self.is_due(message) {
            self.stand_in_line(row)?;
        }
        Ok(())
    }

    /// Asks activities to stop. Returns whether one of them ended at once, which the instance is told.
    fn stop_work(&mut self, row: &mut InstanceRow, round: &PreparedRound) -> Result<bool, StoreFailure> {
        let mut sent = false;
        for part in parts(round) {
            for stop in &part.stops {
                if let Some(message) = self.stop_activity(row.id, part.execution_id, stop)? {
                    self.send_to_itself(row, message)?;
                    sent = true;
                }
            }
        }
        Ok(sent)
    }

    /// Deletes cancelled work, after the inserts: what a round schedules and cancels is never handed out.
    fn cancel_work(&mut self, row: &InstanceRow, round: &PreparedRound) -> Result<(), StoreFailure> {
        for cancelled in &round.cancelled_activities {
            if cancelled.instance == row.instance_id {
                self.cancel_activity_of(row.id, cancelled)?;
            } else {
                self.cancel_activity(cancelled)?;
            }
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

/// What a part of a round changed of its instance.
#[derive(Debug, Clone, Copy)]
struct Effect {
    changed: Changed,
    /// Whether something is different that filters look at: its route has to be found anew.
    rerouted: bool,
}

/// Takes name and version; both are needed to make an instance of a mailbox, and only then the parent counts. Returns
/// whether that changed anything.
fn describe(row: &mut InstanceRow, metadata: &ExecutionMetadata, now: Timestamp) -> bool {
    let (name, version) = (&metadata.orchestration_name, &metadata.orchestration_version);
    if row.name.is_none() {
        if name.is_none() || version.is_none() {
            return false;
        }
        row.known = true;
        row.parent.clone_from(&metadata.parent_instance_id);
        row.created_at = now;
    }
    let renamed = name.is_some() && row.name != *name || version.is_some() && row.version != *version;
    if name.is_some() {
        row.name.clone_from(name);
    }
    if version.is_some() {
        row.version.clone_from(version);
    }
    renamed
}
