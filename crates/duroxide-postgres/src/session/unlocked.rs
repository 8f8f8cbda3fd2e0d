//! [`UnlockedNodes`]: which nodes without a lock are dead.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

/// 24.6: a node is dead if it has had no lock for this long. One whose connection was ended alone has another one by then.
const CONFIRM_AFTER: Duration = Duration::from_millis(200);

/// The nodes that had no lock at the last check, and since when.
#[derive(Debug)]
pub(super) struct UnlockedNodes {
    since: BTreeMap<String, Instant>,
    spares_until: Instant,
}

impl UnlockedNodes {
    /// No node is dead before `spares_until`.
    pub(super) fn new(spares_until: Instant) -> Self {
        Self { since: BTreeMap::new(), spares_until }
    }

    /// A check has found no lock of these nodes. Returns the dead ones.
    pub(super) fn dead_of(&mut self, unlocked: BTreeSet<String>, now: Instant) -> Vec<String> {
        let before = std::mem::take(&mut self.since);
        let since = |node: &String| before.get(node).copied().unwrap_or(now);
        self.since = unlocked.into_iter().map(|node| (node.clone(), since(&node))).collect();
        if now < self.spares_until {
            return Vec::new();
        }
        let is_dead = |(_, since): &(&String, &Instant)| now >= **since + CONFIRM_AFTER;
        self.since.iter().filter(is_dead).map(|(node, _)| node.clone()).collect()
    }

    /// When to check whether a node is dead that has no lock.
    pub(super) fn confirm_at(&self) -> Option<Instant> {
        self.since.values().map(|since| *since + CONFIRM_AFTER).min().map(|at| at.max(self.spares_until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// 24.6
    #[test]
    fn a_node_is_dead_if_it_still_has_no_lock_a_moment_later() {
        let now = Instant::now();
        let mut unlocked = UnlockedNodes::new(now);
        assert_eq!(unlocked.confirm_at(), None);
        assert_eq!(unlocked.dead_of(nodes(&["a"]), now), Vec::<String>::new());
        assert_eq!(unlocked.confirm_at(), Some(now + CONFIRM_AFTER));
        let soon = now + CONFIRM_AFTER / 2;
        assert_eq!(unlocked.dead_of(nodes(&["a", "b"]), soon), Vec::<String>::new());
        assert_eq!(unlocked.dead_of(nodes(&["a", "b"]), now + CONFIRM_AFTER), ["a"]);
    }

    /// 24.6
    #[test]
    fn a_node_that_has_its_lock_again_counts_anew() {
        let now = Instant::now();
        let mut unlocked = UnlockedNodes::new(now);
        unlocked.dead_of(nodes(&["a"]), now);
        unlocked.dead_of(nodes(&[]), now + CONFIRM_AFTER);
        assert_eq!(unlocked.confirm_at(), None);
        assert_eq!(unlocked.dead_of(nodes(&["a"]), now + 2 * CONFIRM_AFTER), Vec::<String>::new());
    }

    /// 24.7: the server was restarted: the locks of all nodes ended at the same time.
    #[test]
    fn no_node_is_dead_while_nodes_are_spared() {
        let now = Instant::now();
        let spares_until = now + 100 * CONFIRM_AFTER;
        let mut unlocked = UnlockedNodes::new(spares_until);
        unlocked.dead_of(nodes(&["a"]), now);
        assert_eq!(unlocked.confirm_at(), Some(spares_until));
        assert_eq!(unlocked.dead_of(nodes(&["a"]), now + 50 * CONFIRM_AFTER), Vec::<String>::new());
        assert_eq!(unlocked.dead_of(nodes(&["a"]), spares_until), ["a"]);
    }
}
