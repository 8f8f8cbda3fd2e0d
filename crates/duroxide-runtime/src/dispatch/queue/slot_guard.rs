//! The right to run one item.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::sync::Notify;

use super::slots::{Place, Slots};
use crate::{
    dispatch::timing::{UNSTARTED_IN_SLOT_MAX, UNSTARTED_MAX},
    env::{Env, Moment, lock},
};

/// The slots of a queue, shared by its loop and what runs in them.
pub(super) struct SlotBoard {
    slots: Mutex<Slots>,
    changed: Notify,
    env: Arc<dyn Env>,
}

impl SlotBoard {
    pub(super) fn new(slots: Slots, env: &Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Self { slots: Mutex::new(slots), changed: Notify::new(), env: Arc::clone(env) })
    }

    pub(super) fn slots(&self) -> MutexGuard<'_, Slots> {
        lock(&self.slots)
    }

    /// Resolves when a slot has become free, or the store no longer holds everything up.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes a slot, or lets the item pass beyond them: see [`Slots::start`] and [`Slots::pass`].
    pub(super) fn take(
        self: &Arc<Self>,
        bound: Option<usize>,
        is_reserved: impl Fn(usize) -> bool,
    ) -> Option<Seat> {
        let place = {
            let mut slots = self.slots();
            match slots.start(bound, is_reserved) {
                Some(slot) => Place::Slot(slot),
                None if bound.is_none() && slots.pass() => Place::InPassing,
                None => return None,
            }
        };
        let taken = self.env.moment();
        Some(Seat { board: Arc::clone(self), place, taken, phase: SeatPhase::Running })
    }
}

/// The right to run one item. However its task ends, dropping the seat makes the slot free.
pub(crate) struct Seat {
    board: Arc<SlotBoard>,
    place: Place,
    taken: Moment,
    phase: SeatPhase,
}

#[derive(Debug, Clone, Copy)]
enum SeatPhase {
    Running,
    Committing { bytes: usize },
}

impl Seat {
    /// A seat for work that takes no slot of a queue and runs no user code.
    pub(crate) fn apart(env: &Arc<dyn Env>) -> Option<Self> {
        SlotBoard::new(Slots::new(1, 0), env).take(None, |_| false)
    }

    /// The slot's number. What passes beyond the slots goes by the first one's.
    pub(crate) fn slot(&self) -> usize {
        match self.place {
            Place::Slot(slot) => slot,
            Place::InPassing => 0,
        }
    }

    /// How long the item may wait for a thread that runs it.
    pub(crate) fn unstarted_max(&self) -> Duration {
        match self.place {
            Place::Slot(_) => UNSTARTED_IN_SLOT_MAX,
            Place::InPassing => UNSTARTED_MAX,
        }
    }

    /// How long ago the item started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.board.env.moment().since(self.taken)
    }

    /// User code is done and its result goes to the store: the slot is free for the next item.
    pub(crate) fn submit(&mut self, bytes: usize) {
        if let SeatPhase::Running = self.phase {
            self.phase = SeatPhase::Committing { bytes };
            let now = self.board.env.moment();
            self.board.slots().submit(self.place, bytes, now.since(self.taken), now);
            self.board.changed.notify_one();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut slots = self.board.slots();
        let is_news = match self.phase {
            SeatPhase::Running => {
                slots.vacate(self.place);
                true
            }
            // The slot has been free since the result was submitted.
            SeatPhase::Committing { bytes } => slots.committed(bytes),
        };
        drop(slots);
        if is_news {
            self.board.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::env::RealEnv;

    fn board() -> Arc<SlotBoard> {
        let env: Arc<dyn Env> = Arc::new(RealEnv::new(1));
        SlotBoard::new(Slots::new(1, 0), &env)
    }

    fn has_changed(board: &SlotBoard) -> bool {
        board.changed().now_or_never().is_some()
    }

    #[tokio::test]
    async fn the_loop_is_told_when_a_slot_becomes_free_and_not_again_when_the_store_answers() {
        let board = board();
        let mut seat = board.take(None, |_| false).unwrap();
        assert!(!has_changed(&board));
        seat.submit(1);
        assert!(has_changed(&board));
        drop(seat);
        assert!(!has_changed(&board));
        drop(board.take(None, |_| false).unwrap());
        assert!(has_changed(&board), "it ended without a result");
    }

    #[tokio::test]
    async fn the_loop_is_told_of_the_answer_that_everything_waited_for() {
        let board = board();
        let mut seat = board.take(None, |_| false).unwrap();
        seat.submit(usize::MAX);
        assert!(has_changed(&board));
        assert!(board.take(None, |_| false).is_none());
        drop(seat);
        assert!(has_changed(&board));
        assert!(board.take(None, |_| false).is_some());
    }
}
