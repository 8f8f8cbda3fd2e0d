//! [`RealEnv`]: the environment in production.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use duroxide_core::{Clock, Timestamp};
use tokio::runtime::Handle;

use super::{
    BoxFuture, Env, Moment, RunningTurn, Timer, TokioTimer, TurnJob, node_name, thread_sleep,
    turn_threads::TurnThreads, watchdog::Watchdog,
};

/// The environment in production: a tokio runtime for tasks and timers, plain threads for turns.
pub struct RealEnv {
    handle: Handle,
    timer: TokioTimer,
    turns: TurnThreads,
    watchdog: Watchdog,
}

impl RealEnv {
    /// An environment on the current tokio runtime that runs up to `turns_max` turns at the same time.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(turns_max: usize) -> Self {
        let handle = Handle::current();
        let watchdog = Watchdog::new(handle.clone());
        let turns = TurnThreads::new(turns_max, handle.clone(), watchdog.clone());
        Self { handle, timer: TokioTimer::new(), turns, watchdog }
    }
}

impl fmt::Debug for RealEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealEnv").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Clock for RealEnv {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

impl Timer for RealEnv {
    fn moment(&self) -> Moment {
        self.timer.moment()
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        let _entered = self.handle.enter();
        self.timer.sleep_until(deadline)
    }
}

impl Env for RealEnv {
    fn spawn(&self, task: BoxFuture) {
        self.handle.spawn(task);
    }

    fn spawn_user_code(&self, task: BoxFuture) {
        let guard = self.watchdog.watch_activity();
        self.handle.spawn(async move {
            let _guard = guard;
            task.await;
        });
    }

    fn run_turn(&self, job: TurnJob) -> Box<dyn RunningTurn> {
        Box::new(self.turns.queue_turn(job))
    }

    fn sleep_off_executor(&self, delay: Duration) -> BoxFuture {
        Box::pin(thread_sleep::sleep(delay))
    }

    fn close_turns(&self) -> BoxFuture {
        let (turns, watchdog) = (self.turns.close(), self.watchdog.close());
        Box::pin(async move {
            turns.await;
            watchdog.await;
        })
    }

    fn random(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }

    fn node_name(&self) -> String {
        node_name::node_name(self.random())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// B15, 21.3: the ids of runtimes are all different. Each bit is set in about half of them, except the six version
    /// bits of a random UUID.
    #[tokio::test]
    async fn ids_have_at_least_122_random_bits() {
        const IDS: u32 = 10_000;
        let env = RealEnv::new(1);
        let ids: BTreeSet<u128> = (0..IDS).map(|_| env.random()).collect();
        assert_eq!(ids.len(), IDS as usize);
        let set = |bit: u32| ids.iter().filter(|id| (*id >> bit) & 1 == 1).count() as u32;
        let random = (0..128).filter(|bit| (IDS / 3..2 * IDS / 3).contains(&set(*bit))).count();
        assert_eq!(random, 122);
    }
}
