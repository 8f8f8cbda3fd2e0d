//! How much memory the large items of cached rows may take.

use std::{cell::Cell, rc::Rc};

use duroxide_provider::store::{LARGE_ITEM_BYTES, bounds::CLAIM_BYTES_MAX};

/// Bytes of all large items.
const BYTES_MAX: usize = 32 << 20;
/// Bytes of the large items of one mailbox: all of them are claimed together.
const MAILBOX_BYTES_MAX: usize = 4 << 20;
const _: () = assert!(MAILBOX_BYTES_MAX < CLAIM_BYTES_MAX / 2);

/// Byte budget of cached items.
#[derive(Debug, Default)]
pub(super) struct Budget {
    taken: Rc<Cell<usize>>,
}

/// Reservation; released on drop.
#[derive(Debug, Default)]
pub(super) struct Reservation {
    bytes: usize,
    budget: Option<Rc<Cell<usize>>>,
}

impl Reservation {
    /// Reserves bytes for an item. Small ones need none, because the number of rows is bounded.
    pub(super) fn take(&mut self, budget: &Budget, bytes: usize) -> bool {
        if bytes < LARGE_ITEM_BYTES {
            return true;
        }
        let taken = budget.taken.get() + bytes;
        if taken > BYTES_MAX || self.bytes + bytes > MAILBOX_BYTES_MAX {
            return false;
        }
        budget.taken.set(taken);
        self.bytes += bytes;
        self.budget = Some(Rc::clone(&budget.taken));
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(taken) = &self.budget {
            taken.set(taken.get() - self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_bounded_and_released() {
        let budget = Budget::default();
        let mut reservations: Vec<Reservation> = Vec::new();
        for _ in 0..BYTES_MAX / MAILBOX_BYTES_MAX {
            let mut reservation = Reservation::default();
            assert!(reservation.take(&budget, LARGE_ITEM_BYTES - 1), "small items need no reservation");
            assert!(
                reservation.take(&budget, MAILBOX_BYTES_MAX / 2)
                    && reservation.take(&budget, MAILBOX_BYTES_MAX / 2)
            );
            assert!(!reservation.take(&budget, LARGE_ITEM_BYTES), "one mailbox has no more");
            reservations.push(reservation);
        }
        assert!(!Reservation::default().take(&budget, LARGE_ITEM_BYTES), "all have no more");
        reservations.pop();
        assert!(Reservation::default().take(&budget, MAILBOX_BYTES_MAX));
        drop(reservations);
        assert_eq!(budget.taken.get(), 0);
    }
}
