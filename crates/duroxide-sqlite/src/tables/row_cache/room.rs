//! How much memory the large items of cached rows take.

use std::{cell::Cell, rc::Rc};

use duroxide_provider::store::{LARGE_ITEM_BYTES, bounds::CLAIM_BYTES_MAX};

/// Bytes of all large items.
const BYTES_MAX: usize = 32 << 20;
/// Bytes of the large items of one mailbox: all of them are claimed together.
const ROOM_BYTES_MAX: usize = 4 << 20;
const _: () = assert!(ROOM_BYTES_MAX < CLAIM_BYTES_MAX / 2);

/// The bytes that are taken.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    taken: Rc<Cell<usize>>,
}

/// A part of a [`Shelf`], given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Room {
    bytes: usize,
    shelf: Option<Rc<Cell<usize>>>,
}

impl Room {
    /// Takes room for an item. Small ones need none, because the number of rows is bounded.
    pub(super) fn take(&mut self, shelf: &Shelf, bytes: usize) -> bool {
        if bytes < LARGE_ITEM_BYTES {
            return true;
        }
        let taken = shelf.taken.get() + bytes;
        if taken > BYTES_MAX || self.bytes + bytes > ROOM_BYTES_MAX {
            return false;
        }
        shelf.taken.set(taken);
        self.bytes += bytes;
        self.shelf = Some(Rc::clone(&shelf.taken));
        true
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(taken) = &self.shelf {
            taken.set(taken.get() - self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_and_given_back() {
        let shelf = Shelf::default();
        let mut rooms: Vec<Room> = Vec::new();
        for _ in 0..BYTES_MAX / ROOM_BYTES_MAX {
            let mut room = Room::default();
            assert!(room.take(&shelf, LARGE_ITEM_BYTES - 1), "small items need no room");
            assert!(room.take(&shelf, ROOM_BYTES_MAX / 2) && room.take(&shelf, ROOM_BYTES_MAX / 2));
            assert!(!room.take(&shelf, LARGE_ITEM_BYTES), "one mailbox has no more");
            rooms.push(room);
        }
        assert!(!Room::default().take(&shelf, LARGE_ITEM_BYTES), "all have no more");
        rooms.pop();
        assert!(Room::default().take(&shelf, ROOM_BYTES_MAX));
        drop(rooms);
        assert_eq!(shelf.taken.get(), 0);
    }
}
