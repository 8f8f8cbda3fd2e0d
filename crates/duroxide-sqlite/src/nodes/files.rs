use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use duroxide_provider::store::{FailureClass, StoreFailure};
use duroxide_store::{NodeLock, NodeLocks};

/// A file beside the database for each node, `{database}-node-{name}`, locked for as long as the node lives. The system
/// ends such a lock with the process that holds it, however it ends; a process that is only stopped keeps it.
///
/// These are files of their own: closing any descriptor of the database would drop the locks that SQLite holds on it.
#[derive(Debug)]
pub(crate) struct NodeFiles {
    database: PathBuf,
}

impl NodeFiles {
    pub(crate) fn beside(database: &Path) -> Self {
        Self { database: database.to_owned() }
    }

    fn path(&self, node: &str) -> PathBuf {
        let mut path = self.database.clone().into_os_string();
        path.push("-node-");
        path.push(node);
        path.into()
    }
}

impl NodeLocks for NodeFiles {
    fn hold(&self, node: &str) -> Result<NodeLock, StoreFailure> {
        if node.is_empty() || !node.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            let message = format!("'{node}' cannot be a node's name: letters, digits and '-' only");
            return Err(StoreFailure::new(FailureClass::Permanent, message));
        }
        let path = self.path(node);
        let cannot = |error: io::Error| {
            let message = format!("cannot lock {}: {error}", path.display());
            StoreFailure::new(FailureClass::Retryable, message)
        };
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(cannot)?;
        file.try_lock().map_err(|error| {
            // Nobody will ever ask for it. If it stays all the same, it is empty.
            let _ = fs::remove_file(&path);
            cannot(error.into())
        })?;
        Ok(NodeLock::new(file))
    }

    /// Without its file nobody can tell whether the node is there: it may use the database by another path.
    fn take_over(&self, node: &str) -> Option<NodeLock> {
        let file = OpenOptions::new().write(true).open(self.path(node)).ok()?;
        file.try_lock().ok().map(|()| NodeLock::new(file))
    }

    /// The file goes before its lock does, so that nobody takes over what has gone.
    fn discard(&self, node: &str, lock: NodeLock) {
        if let Err(error) = fs::remove_file(self.path(node))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(
                target: "duroxide::providers::sqlite", node, %error, "the file of a node that has gone stays"
            );
        }
        drop(lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_taken_over_only_when_its_holder_has_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let files = NodeFiles::beside(&folder.path().join("a.db"));
        let held = files.hold("n1").unwrap();
        assert!(files.take_over("n1").is_none());
        drop(held);
        let taken = files.take_over("n1").expect("nobody holds it");
        assert!(files.take_over("n1").is_none(), "one of two takes it over");
        files.discard("n1", taken);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Decisions 10
    #[test]
    fn a_missing_file_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let files = NodeFiles::beside(&folder.path().join("a.db"));
        assert!(files.take_over("n1").is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "asking makes none");
    }

    #[test]
    fn a_name_is_used_once_and_names_no_other_place() {
        let folder = tempfile::tempdir().unwrap();
        let files = NodeFiles::beside(&folder.path().join("a.db"));
        let _held = files.hold("n1").unwrap();
        assert_eq!(files.hold("n1").unwrap_err().class, FailureClass::Retryable);
        assert_eq!(files.hold("/../n1").unwrap_err().class, FailureClass::Permanent);
    }
}
