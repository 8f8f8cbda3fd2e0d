//! Instance rows: where a store stands with an instance, and when it can be claimed.

mod claim;
mod kept;
mod lock;
mod promote;
mod row;
mod standing;

pub(crate) use kept::{Kept, KeptInstances};
pub(crate) use lock::lease;
pub(crate) use row::{Batch, Changed, Held, InstanceRow, Lock, Place, read_losses};

/// Status of an execution that has not ended.
pub(crate) const RUNNING: &str = "Running";
/// Status of an execution whose successor begins, or waits to begin.
pub(crate) const CONTINUED_AS_NEW: &str = "ContinuedAsNew";
