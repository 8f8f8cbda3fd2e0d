//! The locks that connections hold on a file.

use std::collections::BTreeMap;

use super::HandleId;

/// How strongly a connection holds a file. The order is SQLite's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockLevel {
    Unlocked,
    Shared,
    Reserved,
    Pending,
    Exclusive,
}

/// Another handle holds a conflicting lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// The holders of a file, with their locks.
#[derive(Debug, Default)]
pub(super) struct FileLocks(BTreeMap<HandleId, LockLevel>);

impl FileLocks {
    pub(super) fn lock(&mut self, handle: HandleId, level: LockLevel) -> Result<(), Busy> {
        if self.level(handle) >= level {
            return Ok(());
        }
        let strongest = self.strongest_of_others(handle);
        match level {
            LockLevel::Unlocked => {}
            LockLevel::Shared if strongest >= LockLevel::Pending => return Err(Busy),
            LockLevel::Shared => {}
            _ if strongest >= LockLevel::Reserved => return Err(Busy),
            LockLevel::Exclusive if strongest >= LockLevel::Shared => {
                // Readers may finish, but no new one may begin.
                self.0.insert(handle, LockLevel::Pending);
                return Err(Busy);
            }
            LockLevel::Reserved | LockLevel::Pending | LockLevel::Exclusive => {}
        }
        self.0.insert(handle, level);
        Ok(())
    }

    pub(super) fn unlock(&mut self, handle: HandleId, level: LockLevel) {
        if level < self.level(handle) {
            self.0.insert(handle, level);
        }
    }

    pub(super) fn forget(&mut self, handle: HandleId) {
        self.0.remove(&handle);
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.0.values().any(|level| *level >= LockLevel::Reserved)
    }

    fn level(&self, handle: HandleId) -> LockLevel {
        self.0.get(&handle).copied().unwrap_or(LockLevel::Unlocked)
    }

    fn strongest_of_others(&self, handle: HandleId) -> LockLevel {
        let others = self.0.iter().filter(|(other, _)| **other != handle);
        others.map(|(_, level)| *level).max().unwrap_or(LockLevel::Unlocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HandleId = HandleId(1);
    const OTHER: HandleId = HandleId(2);

    #[test]
    fn readers_share_and_one_of_them_may_reserve() {
        let mut locks = FileLocks::default();
        locks.lock(ONE, LockLevel::Shared).unwrap();
        locks.lock(OTHER, LockLevel::Shared).unwrap();
        locks.lock(ONE, LockLevel::Reserved).unwrap();
        assert_eq!(locks.lock(OTHER, LockLevel::Reserved), Err(Busy));
        assert!(locks.is_reserved());
    }

    #[test]
    fn a_writer_waits_for_readers_and_lets_no_new_one_in() {
        let mut locks = FileLocks::default();
        locks.lock(ONE, LockLevel::Shared).unwrap();
        locks.lock(OTHER, LockLevel::Shared).unwrap();
        assert_eq!(locks.lock(ONE, LockLevel::Exclusive), Err(Busy));
        locks.unlock(OTHER, LockLevel::Unlocked);
        assert_eq!(locks.lock(OTHER, LockLevel::Shared), Err(Busy));
        locks.lock(ONE, LockLevel::Exclusive).unwrap();
        locks.forget(ONE);
        locks.lock(OTHER, LockLevel::Shared).unwrap();
    }
}
