//! Committing a round: everything a turn changes, in one transaction, under the instance's lock.

use duroxide_core::Timestamp;

use super::{ExecutionRow, InstanceChange, InstanceRow, Loaded, Rows, Rules, Tables, readiness::due_at};
use crate::{
    ExecutionMetadata, Losses,
    store::{Answer, ApplyError, Ended, MessageRow, PreparedExecution, PreparedRound},
};

/// The columns of its instance that a part of a round changed.
#[derive(Debug, Clone, Copy)]
struct Effect {
    change: InstanceChange,
    /// Whether a value that filters compare has changed: the route has to be found anew.
    rerouted: bool,
}

impl<T: Tables> Rules<T> {
    /// Checks everything, then writes. Nothing can be refused after the first write.
    pub(super) fn commit_round(
        &mut self,
        round: &PreparedRound,
        handed_in: Timestamp,
    ) -> Result<Answer, ApplyError> {
        let mut held = self.held_instance(&round.token, handed_in)?;
        self.rounds_of.insert(held.row.number);
        let first = if round.execution.execution_id == held.row.execution_id {
            held.execution.take()
        } else {
            self.stored(&held.row, round.execution.execution_id)?
        };
        self.check_new_events(
            &held.row,
            round.execution.execution_id,
            first.as_ref(),
            &round.execution.events,
        )?;
        if let Some(next) = &round.next {
            let stored = self.stored(&held.row, next.execution_id)?;
            self.check_new_events(&held.row, next.execution_id, stored.as_ref(), &next.events)?;
        }
        let messages_left = match held.row.lock.take() {
            Some(lock) => self.tables.consume(held.row.number, &lock.extent)?,
            None => self.tables.has_messages(held.row.number)?,
        };
        let mut effect = self.commit_part(&mut held, &round.execution, first, 1)?;
        if let Some(next) = &round.next {
            let stored = self.stored(&held.row, next.execution_id)?;
            let further = self.commit_part(&mut held, next, stored, 0)?;
            effect.change = effect.change.max(further.change);
            effect.rerouted |= further.rerouted;
        }
        Ok(self.finish_round(held, round, effect, messages_left)?)
    }

    /// The stored row of an execution. Above the instance's current execution none is stored.
    fn stored(&mut self, row: &InstanceRow, execution_id: u64) -> Rows<Option<ExecutionRow>> {
        if execution_id > row.execution_id {
            return Ok(None);
        }
        self.tables.execution(row.number, execution_id)
    }

    /// Stores the part of a round for one execution. An instance that has neither name nor events stays a mailbox.
    fn commit_part(
        &mut self,
        held: &mut Loaded,
        part: &PreparedExecution,
        stored: Option<ExecutionRow>,
        turns: u64,
    ) -> Rows<Effect> {
        let row = &mut held.row;
        let before = (row.known, row.execution_id, row.waits_for_successor());
        let renamed = describe_instance(row, &part.metadata, self.now);
        let mut change = InstanceChange::Round;
        if row.known || !part.events.is_empty() {
            let mut execution =
                self.append_events(row, part.execution_id, stored, &part.events, &part.changes)?;
            self.describe_execution(&mut execution, &part.metadata);
            execution.turns += turns;
            self.tables.write_execution(row.number, part.execution_id, &execution)?;
            if part.metadata.status.is_some() && execution.has_ended() {
                self.merge_key_values(row.number)?;
            }
            if part.execution_id == row.execution_id {
                if row.status.as_ref() != Some(&execution.status) {
                    row.status = Some(execution.status.clone());
                    change = InstanceChange::Status;
                }
                held.execution = Some(execution);
            }
        }
        let pinned = part.metadata.pinned_duroxide_version.is_some();
        let after = (row.known, row.execution_id, row.waits_for_successor());
        if renamed || before.0 != after.0 {
            change = InstanceChange::Description;
        }
        row.updated_at = self.now;
        Ok(Effect { change, rerouted: renamed || pinned || before != after || row.waits_for_successor() })
    }

    /// Queues the work that the round schedules, and writes the unlocked instance. If messages are left, the instance gets
    /// its new number among the ready ones before those that this round wakes.
    fn finish_round(
        &mut self,
        mut held: Loaded,
        round: &PreparedRound,
        effect: Effect,
        messages_left: bool,
    ) -> Rows<Answer> {
        let ended = self.ended_by(&held, round);
        let row = &mut held.row;
        row.drop_ready_number();
        if effect.rerouted {
            row.route = None;
        }
        row.may_be_poison = row.may_be_poison && messages_left && self.tables.has_attempted(row.number)?;
        if !row.may_be_poison {
            row.losses = Losses::default();
        }
        if messages_left {
            self.assign_ready_number(row)?;
        }
        let sent = self.hand_out(row, round)?;
        if row.known && row.route.is_none() && !row.waits_for_successor() {
            // The next message that wakes the instance finds its route.
            let pinned = held.execution.as_ref().and_then(|execution| execution.pinned);
            row.route = Some(self.route_of_execution(row, pinned)?);
        }
        let answer = Answer::RoundCommitted { instance: row.id.clone(), ended };
        if self.decide_after_round(row, !messages_left && !sent)? {
            self.tables.store(held, effect.change)?;
        } else {
            self.tables.delete_instance(row.number)?;
        }
        Ok(answer)
    }

    /// The end of an instance, if the round that was just stored has ended it.
    fn ended_by(&mut self, held: &Loaded, round: &PreparedRound) -> Option<Ended> {
        let last_event_id = held.execution.as_ref()?.last_event_id;
        if !round.has_ended(held.row.execution_id, last_event_id) {
            return None;
        }
        let (custom_status, custom_status_version) =
            self.tables.custom_status_at_hand(held.row.number)?.unwrap_or_default();
        Some(Ended { custom_status, custom_status_version })
    }

    /// Queues the work that a round schedules, deletes the work that it cancels, and requests the stops. Returns whether
    /// any message went to the instance's own mailbox.
    fn hand_out(&mut self, row: &mut InstanceRow, round: &PreparedRound) -> Rows<bool> {
        let mut sent = false;
        for part in parts(round) {
            for activity in &part.activities {
                if activity.instance == row.id {
                    self.enqueue_activity_of(row.number, activity)?;
                } else {
                    self.enqueue_activity(activity)?;
                }
            }
            for message in &part.messages {
                if message.instance == row.id {
                    self.send_to_itself(row, message)?;
                    sent = true;
                } else {
                    self.enqueue(message)?;
                }
            }
        }
        self.cancel_work(row, round)?;
        Ok(self.stop_work(row, round)? || sent)
    }

    fn send_to_itself(&mut self, row: &mut InstanceRow, message: &MessageRow) -> Rows<()> {
        self.insert_message(row.number, message)?;
        if due_at(message.visible, self.now) <= self.now {
            self.assign_ready_number(row)?;
        }
        Ok(())
    }

    /// Deletes cancelled work, after the inserts: work that the same round schedules and cancels is never visible.
    fn cancel_work(&mut self, row: &InstanceRow, round: &PreparedRound) -> Rows<()> {
        for cancelled in &round.cancelled_activities {
            if cancelled.instance == row.id {
                self.cancel_activity_of(row.number, cancelled)?;
            } else {
                self.cancel_activity(cancelled)?;
            }
        }
        for cancelled in &round.cancelled_timers {
            if cancelled.instance == row.id {
                self.cancel_timer(row.number, cancelled.execution_id, cancelled.timer_id)?;
            } else if let Some(other) = self.tables.instance_named(&cancelled.instance)? {
                self.cancel_timer(other.number, cancelled.execution_id, cancelled.timer_id)?;
                self.settle(other)?;
            }
        }
        Ok(())
    }

    /// Asks activities to stop. Returns whether one of them ended at once; the instance gets a message of that.
    fn stop_work(&mut self, row: &mut InstanceRow, round: &PreparedRound) -> Rows<bool> {
        let mut sent = false;
        for part in parts(round) {
            for stop in &part.stops {
                if let Some(message) = self.stop_activity(row.number, part.execution_id, stop)? {
                    self.send_to_itself(row, message)?;
                    sent = true;
                }
            }
        }
        Ok(sent)
    }
}

fn parts(round: &PreparedRound) -> impl Iterator<Item = &PreparedExecution> {
    std::iter::once(&round.execution).chain(&round.next)
}

/// Takes name and version; both are needed to make an instance of a mailbox, and only then the parent counts. Returns
/// whether that changed anything.
fn describe_instance(row: &mut InstanceRow, metadata: &ExecutionMetadata, now: Timestamp) -> bool {
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
