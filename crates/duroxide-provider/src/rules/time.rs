//! What the passing of time changes, and a clock that was set.

mod leases;
mod loaded_rows;
mod promotion;
