//! The bytes of a file: synced content and the changes since.

use crate::dice::Dice;

/// The unit that a disk writes whole or not at all, if it does not tear it.
const SECTOR_BYTES: usize = 512;

/// The bytes of a file: the synced ones, and the changes since.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    written: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => write(to, *at, bytes),
            Self::Truncate { length } => to.resize(*length, 0),
        }
    }

    /// Applies an arbitrary part of the change: all of it for a `luck` of 8, nothing for 0.
    fn apply_partly(&self, to: &mut Vec<u8>, luck: usize, dice: &mut Dice) {
        match self {
            Self::Truncate { .. } if dice.roll(8) < luck => self.apply(to),
            Self::Truncate { .. } => {}
            Self::Write { at, bytes } => {
                for (at, piece) in sectors(*at, bytes) {
                    let left = match dice.roll(16) {
                        0 => dice.roll(piece.len()),
                        _ if dice.roll(8) < luck => piece.len(),
                        _ => 0,
                    };
                    if left > 0 {
                        write(to, at, piece.get(..left).unwrap_or_default());
                    }
                }
            }
        }
    }
}

impl Content {
    /// A file that is on disk as it is.
    fn durable(bytes: Vec<u8>) -> Self {
        Self { written: bytes.clone(), synced: bytes, unsynced: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// Reads as much as there is; returns how much that was.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) -> usize {
        let there = self.written.get(at..).unwrap_or_default();
        let count = there.len().min(into.len());
        let (into, _) = into.split_at_mut(count);
        into.copy_from_slice(there.split_at(count).0);
        count
    }

    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.change(Change::Write { at, bytes: bytes.to_vec() });
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.change(Change::Truncate { length });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.written);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.synced);
        }
    }

    /// A sync failed: the written bytes can still be read, but no later sync makes them durable. Linux behaves like this,
    /// which takes pages that it could not write for clean.
    pub(super) fn fail_to_sync(&mut self) {
        self.unsynced.clear();
    }

    /// The content after a power cut that loses all unsynced changes.
    pub(super) fn synced(&self) -> Self {
        Self::durable(self.synced.clone())
    }

    /// The content after a power cut during which an arbitrary part of the unsynced changes reached the disk: any
    /// sectors, in any combination, some of them torn.
    pub(super) fn torn(&self, dice: &mut Dice) -> Self {
        let mut bytes = self.synced.clone();
        let luck = dice.roll(9);
        for change in &self.unsynced {
            change.apply_partly(&mut bytes, luck, dice);
        }
        Self::durable(bytes)
    }
}

fn write(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if to.len() < at {
        to.resize(at, 0);
    }
    let (_, place) = to.split_at_mut(at);
    let (over, beyond) = bytes.split_at(place.len().min(bytes.len()));
    place.split_at_mut(over.len()).0.copy_from_slice(over);
    to.extend_from_slice(beyond);
}

/// The pieces of a write, cut at the bounds of sectors.
fn sectors(mut at: usize, mut bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    std::iter::from_fn(move || {
        let room = SECTOR_BYTES - at % SECTOR_BYTES;
        let (piece, rest) = bytes.split_at(room.min(bytes.len()));
        let place = at;
        (at, bytes) = (at + piece.len(), rest);
        (!piece.is_empty()).then_some((place, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsynced_bytes_are_lost() {
        let mut content = Content::default();
        content.write(0, b"kept");
        content.sync();
        content.write(2, b"lost as well");
        content.truncate(1);
        assert_eq!(content.len(), 1);
        assert_eq!(content.synced().written, b"kept");
    }

    #[test]
    fn a_failed_sync_is_never_made_up_for() {
        let mut content = Content::default();
        content.write(0, b"failed");
        content.fail_to_sync();
        content.write(6, b" kept");
        content.sync();
        assert_eq!(content.written, b"failed kept");
        assert_eq!(content.synced().written, b"\0\0\0\0\0\0 kept");
    }

    #[test]
    fn a_torn_file_holds_any_mixture_of_sectors() {
        let mut content = Content::default();
        content.write(0, &[1; 4 * SECTOR_BYTES]);
        content.sync();
        content.write(100, &[2; 3 * SECTOR_BYTES]);
        let outcomes: Vec<Vec<u8>> =
            (0..200).map(|seed| content.torn(&mut Dice::new(seed)).written).collect();
        assert!(outcomes.iter().any(|bytes| !bytes.contains(&2)), "nothing survives");
        assert!(outcomes.contains(&content.written), "everything survives");
        assert!(
            outcomes.iter().any(|bytes| bytes[100] == 1 && bytes[1_000] == 2),
            "a later part survives alone"
        );
        assert!(outcomes.iter().any(|bytes| bytes[512] == 2 && bytes[1_023] == 1), "a sector is torn");
        assert!(outcomes.iter().all(|bytes| bytes[..100] == [1; 100]), "what was not written stays");
    }

    #[test]
    fn writes_are_cut_at_sectors() {
        let bytes = [0; 1_000];
        let pieces: Vec<_> = sectors(500, &bytes).map(|(at, piece)| (at, piece.len())).collect();
        assert_eq!(pieces, [(500, 12), (512, 512), (1_024, 476)]);
    }
}
