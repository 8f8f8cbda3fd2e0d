//! [`NewInstances`]: the instances that a transaction begins, and which of them it leaves to other processes (24.11).

use std::collections::BTreeSet;

/// Transactions that begin fewer instances keep a third of them, and at least one.
const MANY: usize = 4;

/// The instances that a transaction has begun. None are noted if they are not shared.
#[derive(Debug, Clone, Default)]
pub(in crate::rules) struct NewInstances {
    begun: BTreeSet<u64>,
    /// Whether other processes claim from this store, too.
    are_shared: bool,
    /// What the last committed transaction did; `None` if it did not begin many.
    before: Option<Share>,
}

/// Which of its new instances a transaction has left to other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Kept,
    Left,
}

impl NewInstances {
    pub(in crate::rules) fn share(&mut self, are_shared: bool) {
        self.are_shared = are_shared;
    }

    pub(in crate::rules) fn add(&mut self, number: u64) {
        if self.are_shared {
            self.begun.insert(number);
        }
    }

    /// The instances that are left to other processes, lowest number first.
    pub(in crate::rules) fn left(&self) -> impl Iterator<Item = u64> + '_ {
        self.begun.iter().skip(self.own()).copied()
    }

    /// How many of them this process keeps.
    fn own(&self) -> usize {
        let all = self.begun.len();
        match self.before.filter(|_| all >= MANY) {
            // Less than half: this process also serves the callers that start them.
            None => all.div_ceil(3),
            // Of a stream of instances each process gets whole transactions in turn. A part of each would be as much work for fewer
            // instances: claims of another process cost as much for ten as for sixty.
            Some(Share::Left) => all,
            Some(Share::Kept) => 0,
        }
    }

    /// Another transaction begins.
    pub(in crate::rules) fn clear(&mut self) {
        self.begun.clear();
    }

    /// The transaction is committed.
    pub(in crate::rules) fn committed(&mut self) {
        let all = self.begun.len();
        let share = if self.own() == all { Share::Kept } else { Share::Left };
        self.before = (all >= MANY).then_some(share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of its new instances each transaction keeps.
    fn kept(new: &mut NewInstances, transactions: &[u64]) -> Vec<usize> {
        let mut kept = Vec::new();
        for begun in transactions {
            new.clear();
            (0..*begun).for_each(|number| new.add(number));
            kept.push(*begun as usize - new.left().count());
            new.committed();
        }
        kept
    }

    fn shared() -> NewInstances {
        NewInstances { are_shared: true, ..NewInstances::default() }
    }

    #[test]
    fn a_process_that_is_alone_keeps_all() {
        assert_eq!(kept(&mut NewInstances::default(), &[1, 7, 60, 60]), [1, 7, 60, 60]);
    }

    /// 24.11
    #[test]
    fn instances_that_are_begun_at_once_are_divided() {
        assert_eq!(kept(&mut shared(), &[60, 0, 60, 1, 60]), [20, 0, 20, 1, 20]);
    }

    /// 24.11
    #[test]
    fn a_stream_of_instances_is_divided_by_transactions() {
        assert_eq!(kept(&mut shared(), &[60, 60, 60, 60, 60]), [20, 60, 0, 60, 0]);
    }

    /// 24.11: an instance that is started alone must not wait for another process.
    #[test]
    fn the_first_of_few_is_kept() {
        assert_eq!(kept(&mut shared(), &[1, 1, 2, 3, 60, 60, 1, 1]), [1, 1, 1, 1, 20, 60, 1, 1]);
    }

    /// 24.4: a transaction that has lost a race does the same when it is tried again.
    #[test]
    fn a_transaction_that_is_repeated_keeps_as_many() {
        let mut new = shared();
        kept(&mut new, &[60, 60]);
        for _ in 0..3 {
            new.clear();
            (0..60).for_each(|number| new.add(number));
            assert_eq!(new.left().count(), 60);
        }
    }
}
