//! Reads, answered by the memory engine.

use duroxide_provider::store::reader_methods::signatures::*;

use super::PeekLockEngine;
use crate::PeekLockStore;

/// Answers each read from memory, after reading the store again if a reload was requested or a write failed.
macro_rules! read_from_memory {
    (() $(fn $read:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl<S: PeekLockStore> StoreReader for PeekLockEngine<S> {
            $(fn $read(&mut self, $($argument: $type),*) -> Result<$result, StoreFailure> {
                self.refresh()?;
                self.memory.$read($($argument),*)
            })*
        }
    };
}

duroxide_provider::store_reads!(read_from_memory, ());
