//! [`UnlockedNodes`]: which nodes without a lock are dead.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::Timestamp;
use tokio::time::Instant;
use tokio_postgres::Row;

use crate::{
    database_error::DatabaseError,
    value::{Columns, time},
};

/// 24.6: a node is dead if it has had no lock for this long. One whose connection was ended alone has another one by then.
const CONFIRM_AFTER: Duration = Duration::from_millis(200);

/// The nodes that a check has found without a lock, and the times of the database that decide how long they are spared.
#[derive(Debug, Clone)]
pub(super) struct UnlockedAtCheck {
    /// When each of them took its lock last, or tried to.
    tried_at: BTreeMap<String, Timestamp>,
    now: Timestamp,
    server_started_at: Timestamp,
}

impl UnlockedAtCheck {
    pub(super) fn of(row: &Row) -> Result<Self, DatabaseError> {
        let names: Vec<String> = row.column("unlocked")?;
        let tried_at: Vec<i64> = row.column("unlocked_tried_at")?;
        Ok(Self {
            tried_at: names.into_iter().zip(tried_at.into_iter().map(time)).collect(),
            now: row.time("now")?,
            server_started_at: row.time("server_started_at")?,
        })
    }

    /// 24.7: for how long a node is spared that took its lock at this time, because the server was started after that, and the node may
    /// be about to come back. A clock that was set back behind the start of the server says nothing about it.
    fn spared_for(&self, tried_at: Timestamp, returns_within: Duration) -> Duration {
        if tried_at >= self.server_started_at || self.now < self.server_started_at {
            return Duration::ZERO;
        }
        returns_within.saturating_sub(self.now.saturating_since(self.server_started_at))
    }
}

/// A node that had no lock at the last check.
#[derive(Debug, Clone, Copy)]
struct Unlocked {
    since: Instant,
    /// When it is dead if it still has none.
    dead_at: Instant,
}

/// The nodes that had no lock at the last check.
#[derive(Debug)]
pub(super) struct UnlockedNodes {
    nodes: BTreeMap<String, Unlocked>,
    spares_until: Instant,
    returns_within: Duration,
}

impl UnlockedNodes {
    /// No node is dead before `spares_until`, and none that the server's restart has cut off before `returns_within` after it.
    pub(super) fn new(spares_until: Instant, returns_within: Duration) -> Self {
        Self { nodes: BTreeMap::new(), spares_until, returns_within }
    }

    /// A check has found no lock of these nodes. Returns the dead ones.
    pub(super) fn dead_of(&mut self, found: UnlockedAtCheck, now: Instant) -> Vec<String> {
        let before = std::mem::take(&mut self.nodes);
        for (name, tried_at) in &found.tried_at {
            let since = before.get(name).map_or(now, |node| node.since);
            let spared_until = now + found.spared_for(*tried_at, self.returns_within);
            let dead_at = (since + CONFIRM_AFTER).max(self.spares_until).max(spared_until);
            self.nodes.insert(name.clone(), Unlocked { since, dead_at });
        }
        let dead = self.nodes.iter().filter(|(_, node)| now >= node.dead_at);
        dead.map(|(name, _)| name.clone()).collect()
    }

    /// When to check whether a node is dead that has no lock.
    pub(super) fn confirm_at(&self) -> Option<Instant> {
        self.nodes.values().map(|node| node.dead_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETURNS_WITHIN: Duration = Duration::from_secs(15);
    /// The server of these tests was started long ago, and all nodes have joined since.
    const STARTED_AT: Timestamp = Timestamp::from_millis(1_000_000);

    fn nodes(names: &[&str]) -> UnlockedAtCheck {
        let joined_at = STARTED_AT.saturating_add(Duration::from_millis(1));
        UnlockedAtCheck {
            tried_at: names.iter().map(|name| ((*name).to_owned(), joined_at)).collect(),
            now: STARTED_AT.saturating_add(Duration::from_secs(3_600)),
            server_started_at: STARTED_AT,
        }
    }

    /// A node that joined before the server was started, at a check so long after the start.
    fn cut_off(name: &str, uptime: Duration) -> UnlockedAtCheck {
        let joined_at = STARTED_AT.saturating_sub(Duration::from_millis(1));
        let tried_at = [(name.to_owned(), joined_at)].into();
        UnlockedAtCheck { tried_at, now: STARTED_AT.saturating_add(uptime), server_started_at: STARTED_AT }
    }

    /// 24.6
    #[test]
    fn a_node_is_dead_if_it_still_has_no_lock_a_moment_later() {
        let now = Instant::now();
        let mut unlocked = UnlockedNodes::new(now, RETURNS_WITHIN);
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
        let mut unlocked = UnlockedNodes::new(now, RETURNS_WITHIN);
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
        let mut unlocked = UnlockedNodes::new(spares_until, RETURNS_WITHIN);
        unlocked.dead_of(nodes(&["a"]), now);
        assert_eq!(unlocked.confirm_at(), Some(spares_until));
        assert_eq!(unlocked.dead_of(nodes(&["a"]), now + 50 * CONFIRM_AFTER), Vec::<String>::new());
        assert_eq!(unlocked.dead_of(nodes(&["a"]), spares_until), ["a"]);
    }

    /// 24.7: this process was started after the server, and has lost nothing.
    #[test]
    fn a_node_that_joined_before_a_restart_is_spared_for_a_while_after_it() {
        let now = Instant::now();
        let mut unlocked = UnlockedNodes::new(now, RETURNS_WITHIN);
        let (early, late) = (Duration::from_secs(3), RETURNS_WITHIN - Duration::from_secs(3));
        assert_eq!(unlocked.dead_of(cut_off("a", early), now), Vec::<String>::new());
        assert_eq!(unlocked.confirm_at(), Some(now + late));
        assert_eq!(unlocked.dead_of(cut_off("a", RETURNS_WITHIN), now + late), ["a"]);
        // The server has been up for longer than that.
        let mut unlocked = UnlockedNodes::new(now, RETURNS_WITHIN);
        unlocked.dead_of(cut_off("a", RETURNS_WITHIN), now);
        assert_eq!(
            unlocked.dead_of(cut_off("a", RETURNS_WITHIN + CONFIRM_AFTER), now + CONFIRM_AFTER),
            ["a"]
        );
    }

    /// 24.7: a node that has come back after the restart and then dies.
    #[test]
    fn a_node_that_joined_after_a_restart_is_not_spared() {
        let now = Instant::now();
        let mut unlocked = UnlockedNodes::new(now, RETURNS_WITHIN);
        let mut found = nodes(&["a"]);
        found.now = STARTED_AT.saturating_add(Duration::from_secs(1));
        unlocked.dead_of(cut_off("a", Duration::ZERO), now);
        assert_eq!(unlocked.dead_of(found, now + CONFIRM_AFTER), ["a"]);
    }

    /// 24.7: the clock was wrong when the server was started, and was corrected.
    #[test]
    fn a_clock_that_is_behind_the_start_of_the_server_spares_no_node() {
        let now = Instant::now();
        let mut unlocked = UnlockedNodes::new(now, RETURNS_WITHIN);
        let mut found = cut_off("a", Duration::ZERO);
        found.now = STARTED_AT.saturating_sub(Duration::from_secs(3_600));
        unlocked.dead_of(found.clone(), now);
        assert_eq!(unlocked.dead_of(found, now + CONFIRM_AFTER), ["a"]);
    }
}
