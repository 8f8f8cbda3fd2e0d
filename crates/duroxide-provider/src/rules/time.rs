//! Changes by the passing of time, and by a clock that was set.

mod leases;
mod loaded_rows;
mod promotion;
