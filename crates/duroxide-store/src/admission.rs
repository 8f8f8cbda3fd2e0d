//! The bounded queue of client enqueues: callers wait here, not in memory that grows.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::StoreOptions;

/// Lets client enqueues in while there is room for them, in order of arrival.
#[derive(Debug)]
pub(crate) struct Admission {
    places: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    bytes_max: u32,
}

/// A place in the queue, given back when dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    _place: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl Admission {
    pub(crate) fn new(options: &StoreOptions) -> Self {
        let bytes_max =
            u32::try_from(options.enqueue_bytes_max.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let places_max = options.enqueue_ops_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(places_max)),
            bytes: Arc::new(Semaphore::new(usize::try_from(bytes_max).unwrap_or(usize::MAX))),
            bytes_max,
        }
    }

    /// Takes room if there is some and nobody waits for it.
    pub(crate) fn admit_now(&self, bytes: usize) -> Option<Admitted> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(self.counted(bytes)).ok()?;
        Some(Admitted { _place: place, _bytes: bytes })
    }

    /// Waits for room. `None` if the store is closed.
    pub(crate) async fn admit(&self, bytes: usize) -> Option<Admitted> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(self.counted(bytes)).await.ok()?;
        Some(Admitted { _place: place, _bytes: bytes })
    }

    /// An operation that is larger than the whole queue is let in when the queue is empty.
    fn counted(&self, bytes: usize) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes_max)
    }
}
