//! Steps that run in place: handing them out, and taking their results.

use super::{Draft, Execution, wake};
use crate::{
    ErrorDetails, EventKind,
    engine::{StepResult, StepToRun, Turn},
};

impl Execution {
    /// The steps that the code waits for and that have not begun. The caller runs them while it holds the lock of the
    /// instance, and passes their results to [`steps_ended`](Self::steps_ended).
    pub fn begin_steps(&mut self) -> Vec<StepToRun> {
        self.shared.lock().steps.begin()
    }

    /// Whether the code waits for a step.
    pub fn has_open_steps(&self) -> bool {
        self.shared.lock().steps.any_open()
    }

    /// Whether the code still waits for this step. The work of a step that was given up is to be dropped.
    pub fn waits_for_step(&self, number: u64) -> bool {
        self.shared.lock().steps.is_open(number)
    }

    /// Delivers results of steps, in this order, and polls the code until it makes no more progress. The events of the
    /// turn follow those of the turn before it, and both can be committed together: see [`Turn::followed_by`].
    pub fn steps_ended(&mut self, ended: Vec<(u64, String, StepResult)>) -> Turn {
        self.shared.lock().begin_turn();
        let mut draft = Draft { base: self.last_event_id(), ..Draft::default() };
        for (step, name, result) in ended {
            // The code may give a step up when it sees the result of another one.
            self.poll_if_needed(false);
            if self.failure.is_none() && self.waits_for_step(step) {
                let result = self.within_limit(result);
                self.append(
                    &mut draft,
                    None,
                    EventKind::StepEnded { step, name: name.clone(), result: result.clone() },
                );
                self.end_step(self.last_event_id(), step, &name, result);
            }
        }
        draft.received = self.last_event_id();
        if self.failure.is_none() {
            self.advance(Vec::new(), &mut draft);
        }
        self.conclude(draft)
    }

    fn within_limit(&self, result: StepResult) -> StepResult {
        let (Ok(text), Some(max)) = (&result, self.limits.max_payload_bytes) else { return result };
        if text.len() <= max {
            return result;
        }
        let bytes = text.len();
        Err(ErrorDetails::activity_failed(format!(
            "Step output size ({bytes} bytes) exceeds limit ({max} bytes)"
        )))
    }

    pub(super) fn end_step(&mut self, event_id: u64, step: u64, name: &str, result: StepResult) {
        let ended = self.shared.lock().steps.end(step, name, result);
        match ended {
            Ok(ended) => {
                drop(ended.replayed);
                self.poll_needed = true;
                wake(ended.waker);
            }
            Err(text) => self.fail(ErrorDetails::nondeterminism(format!("{text} (event {event_id})"))),
        }
    }
}
