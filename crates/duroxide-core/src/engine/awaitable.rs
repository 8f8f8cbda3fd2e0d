//! [`Awaitable`]: the states of one awaited call (activity, timer, child, external wait). Queue reads are in `queue.rs`,
//! because a read has no completion event of its own.

use std::task::{Poll, Waker};

use crate::{CallKind, ErrorDetails};

/// The result of an awaitable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// An activity or a child ended. Boxed, because failures are rare and their details large.
    Result(Result<String, Box<ErrorDetails>>),
    /// An activity that was asked to stop has no outcome of its own.
    Stopped {
        /// Whether a worker may have started the activity.
        started: bool,
    },
    /// A timer fired.
    Fired,
    /// An event or a queue message arrived.
    Data(String),
}

impl Value {
    /// The result of a failed activity or child.
    pub(crate) fn failed(details: ErrorDetails) -> Self {
        if details == ErrorDetails::activity_never_started() {
            Self::Stopped { started: false }
        } else if details == ErrorDetails::activity_stopped() {
            Self::Stopped { started: true }
        } else {
            Self::Result(Err(Box::new(details)))
        }
    }

    /// The outcome of an activity or a child. The history check has matched the kinds, so nothing else can come.
    pub(crate) fn into_outcome(self) -> Result<String, Box<ErrorDetails>> {
        match self {
            Self::Result(result) => result,
            Self::Data(data) => Ok(data),
            Self::Stopped { started: true } => Err(Box::new(ErrorDetails::activity_stopped())),
            Self::Stopped { started: false } => Err(Box::new(ErrorDetails::activity_never_started())),
            Self::Fired => Ok(String::new()),
        }
    }

    pub(crate) fn byte_len(&self) -> usize {
        match self {
            Self::Result(Ok(text)) | Self::Data(text) => text.len(),
            Self::Result(Err(details)) => details.display_message().len(),
            Self::Stopped { .. } | Self::Fired => 0,
        }
    }
}

/// An awaited call, from the moment code makes it until code has its value or drops it.
#[derive(Debug)]
pub(crate) struct Awaitable {
    pub(crate) kind: CallKind,
    /// The schedule event; 0 before it is recorded.
    pub(crate) event_id: u64,
    phase: Phase,
    waker: Option<Waker>,
    /// Set if code asked the activity to stop before its schedule was recorded: whether that was in a live poll.
    stop_asked: Option<bool>,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// The code made the call, and its schedule event is not recorded yet.
    Emitted,
    /// The code made the call and dropped the future before the schedule event was recorded. The event is still recorded.
    DroppedUnrecorded { live: bool },
    /// The schedule event is in the history.
    Scheduled { event_id: u64 },
    /// The completion is in the history, and the code has not polled the future since.
    Completed { value: Value },
}

/// The effect of dropping a future.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// None yet: the drop takes effect when the schedule event is recorded.
    Unrecorded,
    /// The scheduled call is given up.
    Scheduled { event_id: u64 },
    /// None, because the call had ended. The code never receives its value, which has this many bytes.
    AlreadyCompleted { bytes: usize },
}

/// The effect of recording a schedule event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The call is open now.
    Open,
    /// The code had already dropped the future.
    GivenUp { live: bool },
}

impl Awaitable {
    pub(crate) fn new(kind: CallKind) -> Self {
        Self { kind, event_id: 0, phase: Phase::Emitted, waker: None, stop_asked: None }
    }

    /// Applies the schedule event.
    pub(crate) fn on_recorded(&mut self, event_id: u64) -> Recorded {
        match self.phase {
            Phase::Emitted => {
                self.event_id = event_id;
                self.phase = Phase::Scheduled { event_id };
                Recorded::Open
            }
            Phase::DroppedUnrecorded { live } => Recorded::GivenUp { live },
            // Impossible: an action is recorded once, before its completion.
            Phase::Scheduled { .. } | Phase::Completed { .. } => {
                debug_assert!(false, "recorded twice: {self:?}");
                Recorded::Open
            }
        }
    }

    /// Asks the activity to stop. Returns its schedule if that is recorded; otherwise the request waits for the record.
    pub(crate) fn on_stop_asked(&mut self, live: bool) -> Option<u64> {
        match self.phase {
            Phase::Scheduled { event_id } => Some(event_id),
            Phase::Emitted => {
                self.stop_asked = Some(live);
                None
            }
            Phase::DroppedUnrecorded { .. } | Phase::Completed { .. } => None,
        }
    }

    /// Whether a request to stop, made in a live poll, waited for the schedule's record.
    pub(crate) fn take_stop_asked(&mut self) -> bool {
        self.stop_asked.take().unwrap_or(false)
    }

    /// Applies the completion. Returns the waker to call after the lock is released.
    pub(crate) fn on_completed(&mut self, value: Value) -> Option<Waker> {
        match self.phase {
            Phase::Scheduled { .. } => {
                self.phase = Phase::Completed { value };
                self.waker.take()
            }
            // The history check lets only the first completion of a recorded schedule through.
            Phase::Emitted | Phase::DroppedUnrecorded { .. } | Phase::Completed { .. } => {
                debug_assert!(false, "completed out of turn: {self:?}");
                None
            }
        }
    }

    /// Polls the call. Returns its value once; the caller then removes the awaitable.
    pub(crate) fn on_polled(&mut self, waker: &Waker) -> Poll<Value> {
        match std::mem::replace(&mut self.phase, Phase::Emitted) {
            Phase::Completed { value } => Poll::Ready(value),
            pending @ (Phase::Emitted | Phase::DroppedUnrecorded { .. } | Phase::Scheduled { .. }) => {
                self.phase = pending;
                keep_waker(&mut self.waker, waker);
                Poll::Pending
            }
        }
    }

    /// Drops the future.
    pub(crate) fn on_dropped(&mut self, live: bool) -> Dropped {
        match self.phase {
            Phase::Emitted => {
                self.phase = Phase::DroppedUnrecorded { live };
                Dropped::Unrecorded
            }
            Phase::DroppedUnrecorded { .. } => Dropped::Unrecorded,
            Phase::Scheduled { event_id } => Dropped::Scheduled { event_id },
            Phase::Completed { ref value } => Dropped::AlreadyCompleted { bytes: value.byte_len() },
        }
    }
}

/// Keeps the waker of the last poll. Clones it only if it is a different one.
pub(crate) fn keep_waker(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(kept) if kept.will_wake(waker) => {}
        _ => *slot = Some(waker.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduled() -> Awaitable {
        let mut call = Awaitable::new(CallKind::Activity);
        assert_eq!(call.on_recorded(7), Recorded::Open);
        call
    }

    #[test]
    fn a_call_is_recorded_completed_and_read() {
        let mut call = scheduled();
        assert!(call.on_polled(Waker::noop()).is_pending());
        assert!(call.on_completed(Value::Fired).is_some(), "the last poller is woken");
        assert_eq!(call.on_polled(Waker::noop()), Poll::Ready(Value::Fired));
    }

    #[test]
    fn a_drop_before_the_record_is_remembered_until_it() {
        let mut call = Awaitable::new(CallKind::Timer);
        assert_eq!(call.on_dropped(true), Dropped::Unrecorded);
        assert_eq!(call.on_recorded(7), Recorded::GivenUp { live: true });
    }

    #[test]
    fn a_drop_gives_up_a_scheduled_call_but_not_a_completed_one() {
        assert_eq!(scheduled().on_dropped(true), Dropped::Scheduled { event_id: 7 });
        let mut call = scheduled();
        call.on_completed(Value::Data("data".into()));
        assert_eq!(call.on_dropped(true), Dropped::AlreadyCompleted { bytes: 4 });
    }
}
