//! Commit, abandon and renewal of a locked instance.

use std::time::Duration;

use duroxide_core::Timestamp;

use super::{MemoryEngine, instances::InstanceKey};
use crate::{
    Losses,
    store::{Answer, PreparedExecution, PreparedRound, Refusal, timer_key},
};

impl MemoryEngine {
    pub(super) fn commit_round(
        &mut self,
        round: &PreparedRound,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let key = self.check_round(round, handed_in)?;
        let now = self.now;
        self.instances.set_back(key);
        let changed = self.instances.change(key, now, |instance| {
            instance.mailbox.consume_locked();
            instance.lock = None;
            instance.commit(&round.execution, now);
            if let Some(execution) = instance.executions.get_mut(&round.execution.execution_id) {
                instance.touched_executions.insert(round.execution.execution_id);
                execution.count_turn();
            }
            if let Some(next) = &round.next {
                instance.commit(next, now);
            }
            instance.suspect = instance.suspect && instance.mailbox.has_attempted();
            if !instance.suspect {
                instance.losses = Losses::default();
            }
            (instance.id.clone(), instance.ended_by(round))
        });
        for part in std::iter::once(&round.execution).chain(&round.next) {
            self.hand_out(part);
        }
        self.cancel(round);
        self.stop(key, round);
        let (instance, ended) = changed.unwrap_or_default();
        Ok(Answer::RoundCommitted { instance, ended })
    }

    /// Everything that can be wrong with a round is found here, before its first change.
    fn check_round(&self, round: &PreparedRound, handed_in: Timestamp) -> Result<InstanceKey, Refusal> {
        let (key, instance) = self.instances.holder_of(&round.token).ok_or(Refusal::InvalidLockToken)?;
        if !instance.is_locked(handed_in) {
            return Err(Refusal::InstanceLockExpired);
        }
        for part in std::iter::once(&round.execution).chain(&round.next) {
            instance.check_new_events(part.execution_id, &part.events)?;
        }
        Ok(key)
    }

    fn hand_out(&mut self, part: &PreparedExecution) {
        part.activities.iter().for_each(|row| self.insert_activity(row));
        part.messages.iter().for_each(|row| self.instances.enqueue(row, self.now));
    }

    /// Deletes cancelled work, after the inserts: what a round schedules and cancels is never handed out.
    fn cancel(&mut self, round: &PreparedRound) {
        for cancelled in &round.cancelled_activities {
            let instance = self.instances.find(&cancelled.instance).and_then(|key| self.instances.get(key));
            let id = (cancelled.execution_id, cancelled.activity_id);
            if let Some(activity) = instance.and_then(|instance| instance.activities.get(&id).copied()) {
                self.remove_activity(activity);
            }
        }
        for cancelled in &round.cancelled_timers {
            if let Some(key) = self.instances.find(&cancelled.instance) {
                let timer = timer_key(cancelled.execution_id, cancelled.timer_id);
                self.instances.change(key, self.now, |instance| instance.mailbox.remove_by_key(&timer));
            }
        }
    }

    /// Asks activities to stop. One that nobody holds ends at once.
    fn stop(&mut self, instance: InstanceKey, round: &PreparedRound) {
        for part in std::iter::once(&round.execution).chain(&round.next) {
            for stop in &part.stops {
                let id = (part.execution_id, stop.activity_id);
                let queued = self.instances.get(instance).and_then(|instance| instance.activities.get(&id));
                let Some(key) = queued.copied() else { continue };
                let Some(activity) = self.activities.get(key) else { continue };
                if activity.is_locked(self.now) {
                    self.activities.change(key, self.now, |activity| activity.stop_requested = true);
                } else {
                    let message = stop.message(activity.claimed);
                    self.remove_activity(key);
                    self.instances.enqueue(message, self.now);
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
        let (key, _) = self.instances.holder_of(token).ok_or(Refusal::InvalidLockToken)?;
        let hidden_until = self.hidden_until(delay);
        self.instances.set_back(key);
        self.instances.change(key, self.now, |instance| {
            instance.lock = None;
            instance.mailbox.release_locked(hidden_until, ignore_attempt);
            instance.suspect |= !ignore_attempt;
        });
        Ok(Answer::Done)
    }

    pub(super) fn renew_instance(
        &mut self,
        token: &str,
        extend_for: Duration,
        handed_in: Timestamp,
    ) -> Result<Answer, Refusal> {
        let (key, instance) = self.instances.holder_of(token).ok_or(Refusal::InvalidLockToken)?;
        if !instance.is_locked(handed_in) {
            return Err(Refusal::InstanceLockExpired);
        }
        let now = self.now;
        self.instances.change(key, now, |instance| {
            if let Some(lock) = &mut instance.lock {
                lock.extend(now, extend_for);
            }
        });
        Ok(Answer::Done)
    }

    /// Until when an abandon with this delay hides its rows.
    pub(super) fn hidden_until(&self, delay: Option<Duration>) -> Option<Timestamp> {
        delay.filter(|delay| !delay.is_zero()).map(|delay| self.now.saturating_add(delay))
    }
}
