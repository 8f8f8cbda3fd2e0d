//! The shared memory of a file in WAL mode.

use std::{collections::BTreeMap, ffi::c_void, sync::atomic::AtomicU64};

use super::{HandleId, locks::Busy};

/// The memory that connections to one file in WAL mode share, and the locks on its parts.
#[derive(Debug, Default)]
pub(super) struct SharedMemory {
    /// Never moved while a handle has the memory mapped.
    regions: Vec<Box<[AtomicU64]>>,
    holders: BTreeMap<HandleId, Slots>,
}

/// The lock slots of one connection, a bit for each.
#[derive(Debug, Default, Clone, Copy)]
struct Slots {
    shared: u32,
    exclusive: u32,
}

/// The request of a lock call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotLock {
    Shared,
    Exclusive,
    Unlock,
}

impl SharedMemory {
    /// The address of a region; null if it is not there and shall not be made.
    pub(super) fn map(&mut self, handle: HandleId, region: usize, bytes: usize, make: bool) -> *mut c_void {
        self.holders.entry(handle).or_default();
        while make && self.regions.len() <= region {
            self.regions.push((0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect());
        }
        let memory = self.regions.get(region);
        memory.map_or(std::ptr::null_mut(), |memory| memory.as_ptr().cast_mut().cast())
    }

    /// A connection lets go of everything. The last one takes the memory with it.
    pub(super) fn unmap(&mut self, handle: HandleId) {
        self.holders.remove(&handle);
        if self.holders.is_empty() {
            self.regions.clear();
        }
    }

    /// Locks or unlocks the slots whose bits are set.
    pub(super) fn lock(&mut self, handle: HandleId, slots: u32, lock: SlotLock) -> Result<(), Busy> {
        let others = self.holders.iter().filter(|(other, _)| **other != handle);
        let (shared, exclusive) = others.fold((0, 0), |(shared, exclusive), (_, held)| {
            (shared | held.shared, exclusive | held.exclusive)
        });
        let in_the_way = match lock {
            SlotLock::Shared => exclusive,
            SlotLock::Exclusive => shared | exclusive,
            SlotLock::Unlock => 0,
        };
        if in_the_way & slots != 0 {
            return Err(Busy);
        }
        let held = self.holders.entry(handle).or_default();
        match lock {
            SlotLock::Shared => held.shared |= slots,
            SlotLock::Exclusive => held.exclusive |= slots,
            SlotLock::Unlock => {
                held.shared &= !slots;
                held.exclusive &= !slots;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HandleId = HandleId(1);
    const OTHER: HandleId = HandleId(2);

    #[test]
    fn a_slot_is_shared_or_exclusive() {
        let mut memory = SharedMemory::default();
        memory.lock(ONE, 0b01, SlotLock::Shared).unwrap();
        memory.lock(OTHER, 0b01, SlotLock::Shared).unwrap();
        assert_eq!(memory.lock(OTHER, 0b11, SlotLock::Exclusive), Err(Busy));
        memory.lock(OTHER, 0b10, SlotLock::Exclusive).unwrap();
        assert_eq!(memory.lock(ONE, 0b10, SlotLock::Shared), Err(Busy));
        memory.lock(OTHER, 0b10, SlotLock::Unlock).unwrap();
        memory.lock(ONE, 0b10, SlotLock::Shared).unwrap();
    }

    #[test]
    fn connections_see_the_same_memory_until_the_last_one_leaves() {
        let mut memory = SharedMemory::default();
        assert!(memory.map(ONE, 0, 64, false).is_null());
        let made = memory.map(ONE, 0, 64, true);
        assert_eq!(memory.map(OTHER, 0, 64, false), made);
        memory.unmap(ONE);
        assert_eq!(memory.map(OTHER, 0, 64, false), made);
        memory.unmap(OTHER);
        assert!(memory.map(ONE, 0, 64, false).is_null());
    }
}
