//! What code may and must not do: the guard at run time, being told of a cancellation, sagas.

mod cancel_requested;
mod guard;
mod saga;
