//! The engine: one live run of an orchestration, moved by turns.
//!
//! ```text
//! execution.rs    Execution: start and turn; the one loop for recorded and new events
//! replay.rs       rebuilds an execution from its stored history; divergence.rs where its code first differs
//! receive.rs      messages become events, or are dropped, or fail the turn
//! conclude.rs     how a turn ends: breadcrumbs, terminal event, work to hand out
//! ending.rs       ends an execution without running its code
//! state.rs        what code and engine share: emitted actions, awaitables, key-value state, custom status;
//!                 behind a lock (state/shared.rs), and for one thread only (state/access.rs)
//! awaitable.rs    the life of one awaited call; queue.rs the same for queue reads
//! matching.rs     actions against recorded events
//! generation.rs   rules that were changed, and which executions keep the old ones
//! history.rs      HistoryCheck: what any history must satisfy, incrementally
//! poll.rs         polls user code: wakers, panics, self-waking loops
//! limit_check.rs  limits on what one turn may ask for
//! ```

mod awaitable;
mod conclude;
mod ending;
mod execution;
mod generation;
mod history;
mod limit_check;
mod matching;
mod poll;
mod queue;
mod receive;
mod replay;
mod seed;
mod state;
mod turn;

pub(crate) use awaitable::Value;
pub(crate) use conclude::CANCEL_AND_WAIT;
pub use ending::{Ending, Record, end_without_code};
pub use execution::Execution;
pub(crate) use generation::Generation;
pub use history::{HistoryCheck, HistoryViolation, cancels};
pub(crate) use poll::{Undecodable, panic_text};
pub use replay::{Divergence, audit, check_replay};
pub use seed::{Seed, Setup};
pub(crate) use state::{CANCELLATION, Caller, Identity, Shared, State};
pub use state::{StepResult, StepToRun, StepWork};
pub use turn::{Continuation, Outcome, Turn};
