use std::{fmt, time::SystemTime};

use duroxide_core::{Clock, Timestamp};
use tokio::{runtime::Handle, time::Instant};

use super::{BoxFuture, Env, Moment, RunningTurn, TurnJob, pulse::Pulse, turn_threads::TurnThreads};

/// The environment in production: a tokio runtime for tasks and timers, plain threads for turns.
pub struct RealEnv {
    handle: Handle,
    began: Instant,
    turns: TurnThreads,
    pulse: Pulse,
}

impl RealEnv {
    /// An environment on the current tokio runtime that runs up to `turns_max` turns at the same time.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(turns_max: usize) -> Self {
        let handle = Handle::current();
        let turns = TurnThreads::new(turns_max, handle.clone());
        Self { handle, began: Instant::now(), turns, pulse: Pulse::default() }
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

impl Env for RealEnv {
    fn moment(&self) -> Moment {
        Moment::new(self.began.elapsed())
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        // A deadline that the clock cannot represent never comes.
        let Some(deadline) = self.began.checked_add(deadline.since_begin()) else {
            return Box::pin(std::future::pending());
        };
        let _entered = self.handle.enter();
        Box::pin(tokio::time::sleep_until(deadline))
    }

    fn spawn(&self, task: BoxFuture) {
        self.handle.spawn(task);
    }

    fn spawn_user_code(&self, task: BoxFuture) {
        let beating = self.pulse.beat(&self.handle);
        self.handle.spawn(async move {
            let _beating = beating;
            task.await;
        });
    }

    fn run_turn(&self, job: TurnJob) -> Box<dyn RunningTurn> {
        Box::new(self.turns.run(job))
    }

    fn close_turns(&self) -> BoxFuture {
        self.turns.close()
    }

    fn random(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }
}
