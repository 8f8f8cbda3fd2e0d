//! [`VirtualEnv`]: the environment of a node in a cluster.

use std::{
    future::ready,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use duroxide_core::{Clock, Timestamp};
use duroxide_runtime::env::{BoxFuture, Env, Moment, RunningTurn, Timer, TurnJob};

use super::{process::Process, time::VirtualTime};
use crate::dice::Dice;

/// The environment of one run of a node: tasks of its process, virtual time, random numbers from the seed.
pub(super) struct VirtualEnv {
    process: Arc<Process>,
    time: VirtualTime,
    dice: Mutex<Dice>,
}

impl VirtualEnv {
    /// `starts` numbers the runs of the node: each run has its own random numbers.
    pub(super) fn new(process: Arc<Process>, time: VirtualTime, seed: u64, starts: u64) -> Self {
        let dice = Mutex::new(Dice::new(seed, (process.node() as u64) << 32 | starts));
        Self { process, time, dice }
    }
}

impl Clock for VirtualEnv {
    fn now(&self) -> Timestamp {
        self.time.now()
    }
}

impl Timer for VirtualEnv {
    fn moment(&self) -> Moment {
        self.time.moment()
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        self.time.sleep_until(deadline)
    }
}

impl Env for VirtualEnv {
    fn spawn(&self, task: BoxFuture) {
        self.process.spawn(task);
    }

    /// Runs the turn on the calling thread, which is the only one. If the turn panics, its caller gets no answer, as
    /// with a turn thread.
    fn run_turn(&self, job: TurnJob) -> Box<dyn RunningTurn> {
        let _panic = catch_unwind(AssertUnwindSafe(job));
        Box::new(DoneTurn)
    }

    fn close_turns(&self) -> BoxFuture {
        Box::pin(ready(()))
    }

    fn random(&self) -> u128 {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }
}

/// A turn that has already ended.
struct DoneTurn;

impl RunningTurn for DoneTurn {
    fn give_up(&self) -> bool {
        true
    }
}
