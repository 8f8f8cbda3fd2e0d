//! The operations of the holder of an instance.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::ModelEngine;
use crate::{
    Losses,
    store::{Answer, EventRow, PreparedRound, Refusal, StateChange, timer_key, token_row},
};

impl ModelEngine {
    /// The instance that this token locks, live or not.
    pub(super) fn locked_instance(&self, token: &str) -> Result<u64, Refusal> {
        let key = token_row(token).filter(|key| {
            let lock = self.instances.get(key).and_then(|instance| instance.lock.as_ref());
            lock.is_some_and(|lock| lock.token == token)
        });
        key.ok_or(Refusal::InvalidLockToken)
    }

    fn held_instance(&self, token: &str, handed_in: Timestamp) -> Result<u64, Refusal> {
        let key = self.locked_instance(token)?;
        if self.instances[&key].is_locked(handed_in) { Ok(key) } else { Err(Refusal::InstanceLockExpired) }
    }

    pub(super) fn commit_round(
        &mut self,
        round: &PreparedRound,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let key = self.held_instance(&round.token, handed_in)?;
        for part in std::iter::once(&round.execution).chain(&round.next) {
            self.instances[&key].check_new(part.execution_id, &part.events)?;
        }
        let now = self.now;
        self.rounds_of.push(key);
        let answer = self.change(key, |instance| {
            instance.ready = None;
            instance.lock = None;
            instance.messages.retain(|message| !message.locked);
            instance.commit(&round.execution, now);
            if let Some(execution) = instance.executions.get_mut(&round.execution.execution_id) {
                execution.turns += 1;
            }
            round.next.iter().for_each(|next| instance.commit(next, now));
            instance.may_be_poison &= instance.messages.iter().any(|message| message.attempts > 0);
            if !instance.may_be_poison {
                instance.losses = Losses::default();
            }
            Answer::RoundCommitted { instance: instance.id.clone(), ended: instance.ended_by(round) }
        });
        self.hand_out(round);
        self.cancel(round);
        self.stop(key, round);
        Ok(answer.unwrap())
    }

    fn hand_out(&mut self, round: &PreparedRound) {
        for part in std::iter::once(&round.execution).chain(&round.next) {
            part.activities.iter().for_each(|row| drop(self.enqueue_activity(row)));
            part.messages.iter().for_each(|row| drop(self.enqueue(row)));
        }
    }

    /// After the inserts: work that the same round schedules and cancels is never visible.
    fn cancel(&mut self, round: &PreparedRound) {
        for cancelled in &round.cancelled_activities {
            if let Some(key) = self.find_activity(cancelled) {
                self.remove_activity(key);
            }
        }
        for cancelled in &round.cancelled_timers {
            let timer = Some(timer_key(cancelled.execution_id, cancelled.timer_id));
            if let Some(key) = self.find(&cancelled.instance) {
                self.change(key, |instance| instance.messages.retain(|message| message.key != timer));
            }
        }
    }

    /// Asks activities to stop. An activity without a lock ends at once.
    fn stop(&mut self, instance: u64, round: &PreparedRound) {
        for part in std::iter::once(&round.execution).chain(&round.next) {
            for stop in &part.stops {
                let queued = self.activities.iter_mut().find(|(_, activity)| {
                    let id = (activity.instance, activity.row.execution_id, activity.row.activity_id);
                    id == (instance, part.execution_id, stop.activity_id)
                });
                let Some((key, activity)) = queued else { continue };
                if activity.is_locked(self.now) {
                    activity.stop_requested = true;
                } else {
                    let (key, claimed) = (*key, activity.claimed);
                    self.remove_activity(key);
                    self.enqueue(stop.message(claimed));
                }
            }
        }
    }

    pub(super) fn abandon_instance(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<Answer, Refusal> {
        let key = self.locked_instance(token)?;
        let hidden_until = self.hidden_until(delay);
        self.change(key, |instance| {
            instance.ready = None;
            instance.lock = None;
            instance.release(hidden_until, ignore_attempt);
            instance.may_be_poison |= !ignore_attempt;
        });
        Ok(Answer::Done)
    }

    pub(super) fn renew_instance(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let (key, now) = (self.held_instance(token, handed_in)?, self.now);
        self.change(key, |instance| {
            instance.lock.iter_mut().for_each(|lock| lock.extend(now, extend_for));
        });
        Ok(Answer::Done)
    }

    /// Appends events outside a round.
    pub(super) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[EventRow],
        changes: &[StateChange],
    ) -> Result<Answer, Refusal> {
        if events.is_empty() {
            return Ok(Answer::Done);
        }
        match self.find(instance) {
            Some(key) => self.instances[&key].check_new(execution_id, events)?,
            None => super::Instance::mailbox(instance, self.now).check_new(execution_id, events)?,
        }
        let (key, now) = (self.open(instance), self.now);
        self.change(key, |instance| instance.append(execution_id, events, changes, now));
        Ok(Answer::Done)
    }
}
