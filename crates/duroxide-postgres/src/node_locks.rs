//! Locks by which nodes show that they live: advisory locks of the session connection.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use duroxide_provider::store::StoreFailure;
use duroxide_store::{NodeLock, NodeLocks};
use tokio::sync::mpsc::UnboundedSender;

use crate::session::{Command, Session};

/// How often the store takes the dead nodes that the session connection has found; that costs no query.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often a node renews its row. The advisory lock is authoritative; the row serves processes that cannot see the
/// lock.
const RENEW_INTERVAL: Duration = Duration::from_secs(30);

/// The locks of nodes on one session connection.
#[derive(Debug)]
pub(crate) struct SessionLocks {
    session: Arc<Session>,
}

impl SessionLocks {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    fn lock(&self, node: &str) -> NodeLock {
        NodeLock::new(Held { node: node.to_owned(), commands: self.session.sender() })
    }
}

impl NodeLocks for SessionLocks {
    fn hold(&self, node: &str) -> Result<NodeLock, StoreFailure> {
        self.session.ask(|reply| Command::Hold { node: node.to_owned(), reply })??;
        Ok(self.lock(node))
    }

    /// The session connection takes over dead nodes itself.
    fn take_over(&self, _node: &str) -> Option<NodeLock> {
        None
    }

    fn gone_nodes(&self) -> Option<Vec<(String, NodeLock)>> {
        let gone = self.session.state().take_gone();
        Some(gone.into_iter().map(|node| (node.clone(), self.lock(&node))).collect())
    }

    fn were_interrupted(&self) -> bool {
        self.session.state().take_interrupted()
    }

    fn discard(&self, node: &str, lock: NodeLock) {
        // The row first: without its lock it would be found again.
        self.session.send(Command::Discard { node: node.to_owned() });
        drop(lock);
    }

    fn note_join_attempt(&self, node: &str) {
        self.session.send(Command::NoteJoinAttempt { node: node.to_owned() });
    }

    /// Without an answer it is unknown, and no item is ended that such a node may take.
    fn has_joining_node(&self, joined: &BTreeSet<String>, within: Duration) -> bool {
        let ask = |reply| Command::HasJoining { joined: joined.clone(), within, reply };
        self.session.ask(ask).unwrap_or(true)
    }

    fn look_interval(&self) -> Duration {
        LOOK_INTERVAL
    }

    fn renew_interval(&self) -> Duration {
        RENEW_INTERVAL
    }
}

/// A lock that the session holds until this is dropped.
struct Held {
    node: String,
    commands: UnboundedSender<Command>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Release { node: std::mem::take(&mut self.node) });
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("node", &self.node).finish_non_exhaustive()
    }
}
