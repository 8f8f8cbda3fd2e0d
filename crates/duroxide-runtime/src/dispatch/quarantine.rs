//! Items that failed again and again run alone among their like.
//!
//! When code takes its process with it, everything claimed beside it dies too. All leases end together, the next claim
//! takes the same items together again, and a killer would take its bystanders along until all of them are poison. So
//! of the items that have failed repeatedly only one runs at a time on a node; the others are given back, their attempt
//! taken back, *before* its code starts. If it is the killer, it dies alone, and the others are free while its lease
//! lasts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Notify;

use crate::env::{Env, Moment, lock};

/// From this attempt on an item is under suspicion. Not earlier: after a crash of a busy node everything it held is on
/// its second attempt, and most of it is innocent.
const SUSPICIOUS_ATTEMPT: u32 = 3;
/// Both queues may bring suspects out of one transaction, one a moment after the other.
const SETTLE: Duration = Duration::from_millis(20);
/// How long a suspect waits for the others to be given back.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Code that has run this long does not kill at once; it keeps nobody waiting any longer.
const STAY_MAX: Duration = Duration::from_secs(1);
/// For how long the others rest.
pub(crate) const GIVE_WAY: Duration = Duration::from_millis(100);

/// The suspects a node holds, and the one that runs.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    /// When the one that runs began.
    occupied: Option<Moment>,
}

/// A suspect that this node holds.
#[derive(Debug)]
pub(crate) struct Suspect {
    quarantine: Arc<Quarantine>,
}

/// The right of a suspect to run.
#[derive(Debug)]
pub(crate) struct Stay {
    quarantine: Arc<Quarantine>,
    since: Moment,
}

impl Quarantine {
    /// Takes note of a claimed item; `None` if it is not under suspicion. One beyond `max_attempts` is not: its code
    /// does not run any more.
    pub(crate) fn hold(self: &Arc<Self>, attempt_count: u32, max_attempts: u32) -> Option<Suspect> {
        let threshold = SUSPICIOUS_ATTEMPT.min(max_attempts).max(2);
        if !(threshold..=max_attempts).contains(&attempt_count) {
            return None;
        }
        lock(&self.state).held += 1;
        Some(Suspect { quarantine: Arc::clone(self) })
    }

    async fn until_alone(&self) {
        loop {
            let changed = self.changed.notified();
            if lock(&self.state).held <= 1 {
                return;
            }
            changed.await;
        }
    }
}

impl Suspect {
    /// Waits until no other suspect is held, and runs. `None` if another one runs: then this one has to give way.
    pub(crate) async fn enter(&self, env: &Arc<dyn Env>) -> Option<Stay> {
        let stay = self.occupy(env.moment())?;
        env.sleep(SETTLE).await;
        tokio::select! {
            () = self.quarantine.until_alone() => {}
            () = env.sleep(WAIT_MAX) => {}
        }
        Some(stay)
    }

    fn occupy(&self, now: Moment) -> Option<Stay> {
        let mut state = lock(&self.quarantine.state);
        if state.occupied.is_some_and(|since| now.since(since) < SETTLE + WAIT_MAX + STAY_MAX) {
            return None;
        }
        state.occupied = Some(now);
        Some(Stay { quarantine: Arc::clone(&self.quarantine), since: now })
    }
}

impl Drop for Suspect {
    fn drop(&mut self) {
        lock(&self.quarantine.state).held -= 1;
        self.quarantine.changed.notify_waiters();
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut state = lock(&self.quarantine.state);
        // Somebody else may have come in after this one had stayed long enough.
        if state.occupied == Some(self.since) {
            state.occupied = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const MAX_ATTEMPTS: u32 = 10;

    fn at(millis: u64) -> Moment {
        Moment::new(Duration::from_millis(millis))
    }

    #[test]
    fn only_what_failed_repeatedly_and_may_still_run_is_under_suspicion() {
        let quarantine = Arc::new(Quarantine::default());
        let suspects = [1, 2, 3, 10, 11].map(|attempt| quarantine.hold(attempt, MAX_ATTEMPTS).is_some());
        assert_eq!(suspects, [false, false, true, true, false]);
        assert!(
            quarantine.hold(2, 2).is_some(),
            "the last attempt is always under suspicion, except the first"
        );
    }

    /// S1.33, S1.36
    #[test]
    fn one_suspect_runs_at_a_time() {
        let quarantine = Arc::new(Quarantine::default());
        let [killer, bystander] = [3, 3].map(|attempt| quarantine.hold(attempt, MAX_ATTEMPTS).unwrap());
        let stay = killer.occupy(at(0));
        assert!(stay.is_some());
        assert!(bystander.occupy(at(10)).is_none());
        drop(stay);
        assert!(bystander.occupy(at(20)).is_some());
    }

    #[test]
    fn long_running_code_keeps_nobody_waiting() {
        let quarantine = Arc::new(Quarantine::default());
        let [slow, next] = [3, 3].map(|attempt| quarantine.hold(attempt, MAX_ATTEMPTS).unwrap());
        let stay = slow.occupy(at(0));
        let second = next.occupy(at(10_000));
        assert!(second.is_some());
        drop(stay);
        assert!(slow.occupy(at(10_001)).is_none(), "the one that left late did not open the door for others");
    }

    #[tokio::test]
    async fn the_one_that_runs_waits_until_the_others_are_given_back() {
        let quarantine = Arc::new(Quarantine::default());
        let [_killer, bystander] = [3, 3].map(|attempt| quarantine.hold(attempt, MAX_ATTEMPTS).unwrap());
        assert!(quarantine.until_alone().now_or_never().is_none());
        let waiting = tokio::spawn({
            let quarantine = Arc::clone(&quarantine);
            async move { quarantine.until_alone().await }
        });
        tokio::task::yield_now().await;
        drop(bystander);
        waiting.await.unwrap();
    }
}
