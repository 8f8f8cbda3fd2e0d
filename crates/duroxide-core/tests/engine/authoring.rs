//! Authoring: the guard at run time, subscriptions to cancellation, sagas, steps in place, audits.

mod audit;
mod cancel_and_wait;
mod cancel_requested;
mod guard;
mod saga;
mod steps;
