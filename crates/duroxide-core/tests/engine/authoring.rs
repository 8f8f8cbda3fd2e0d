//! What code may and must not do: the guard at run time, being told of a cancellation, sagas, steps in place, audits.

mod audit;
mod cancel_and_wait;
mod cancel_requested;
mod guard;
mod saga;
mod steps;
