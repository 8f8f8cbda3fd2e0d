//! [`Steps`]: pieces of work that run in place, concurrently with the code that waits for them.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    task::{Poll, Waker},
};

use super::super::awaitable::keep_waker;
use crate::ErrorDetails;

/// The result of a step.
pub type StepResult = Result<String, ErrorDetails>;

/// The work of a step.
pub type StepWork = Pin<Box<dyn Future<Output = StepResult> + Send>>;

/// A step that the code waits for and that is to run now.
pub struct StepToRun {
    /// The position of the step among all steps of the execution, from 1.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Makes its work.
    pub begin: Box<dyn FnOnce() -> StepWork + Send>,
}

impl fmt::Debug for StepToRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepToRun")
            .field("number", &self.number)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The steps that the code holds. A step has no event of its own until it has ended, so its number identifies it.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    last_number: u64,
    held: BTreeMap<u64, Step>,
}

#[derive(Debug)]
struct Step {
    name: String,
    phase: Phase,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum Phase {
    /// Not begun. In a replay the recorded result comes instead of it.
    Waiting(StepToRun),
    Begun,
    Ended(StepResult),
}

impl Steps {
    pub(crate) fn call(&mut self, name: String, begin: Box<dyn FnOnce() -> StepWork + Send>) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        let to_run = StepToRun { number, name: name.clone(), begin };
        self.held.insert(number, Step { name, phase: Phase::Waiting(to_run), waker: None });
        number
    }

    pub(crate) fn poll(&mut self, number: u64, waker: &Waker) -> Poll<StepResult> {
        match self.held.remove(&number) {
            Some(Step { phase: Phase::Ended(result), .. }) => Poll::Ready(result),
            Some(mut step) => {
                keep_waker(&mut step.waker, waker);
                self.held.insert(number, step);
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }

    /// Gives a step up. Returns the code of a step that has not begun, which must be dropped without holding the lock.
    pub(crate) fn give_up(&mut self, number: u64) -> Option<StepToRun> {
        match self.held.remove(&number)?.phase {
            Phase::Waiting(to_run) => Some(to_run),
            Phase::Begun | Phase::Ended(_) => None,
        }
    }

    /// Ends a step with its recorded result.
    ///
    /// # Errors
    /// The behaviour of the code, if it does not wait for such a step.
    pub(crate) fn end(&mut self, number: u64, name: &str, result: StepResult) -> Result<Ended, String> {
        let Some(step) = self.held.get_mut(&number) else {
            return Err(format!("history StepEnded of step {number} ('{name}') but no such step is open"));
        };
        if step.name != name {
            return Err(format!(
                "step mismatch: code=step {number} ('{}') vs event=step {number} ('{name}')",
                step.name
            ));
        }
        let replayed = match std::mem::replace(&mut step.phase, Phase::Ended(result)) {
            Phase::Waiting(to_run) => Some(to_run),
            Phase::Begun | Phase::Ended(_) => None,
        };
        Ok(Ended { replayed, waker: step.waker.take() })
    }

    /// The steps that are to begin now.
    pub(crate) fn begin(&mut self) -> Vec<StepToRun> {
        let waiting = self.held.values_mut().filter_map(|step| {
            if !matches!(step.phase, Phase::Waiting(_)) {
                return None;
            }
            let Phase::Waiting(to_run) = std::mem::replace(&mut step.phase, Phase::Begun) else {
                return None;
            };
            Some(to_run)
        });
        waiting.collect()
    }

    /// Whether the code still waits for this step.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.held.get(&number).is_some_and(|step| !matches!(step.phase, Phase::Ended(_)))
    }

    pub(crate) fn any_open(&self) -> bool {
        self.held.values().any(|step| !matches!(step.phase, Phase::Ended(_)))
    }
}

/// A step that has ended.
pub(crate) struct Ended {
    /// The work that need not run, to be dropped without a lock.
    pub(crate) replayed: Option<StepToRun>,
    pub(crate) waker: Option<Waker>,
}
