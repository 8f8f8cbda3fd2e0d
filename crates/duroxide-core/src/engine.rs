//! The engine: one live run of an orchestration, moved by turns.

mod ending;
mod execution;
mod seed;
mod turn;

pub use ending::{Ending, Record, end_without_code};
pub use execution::{Execution, Setup};
pub use seed::Seed;
pub use turn::{Continuation, Outcome, Turn};
