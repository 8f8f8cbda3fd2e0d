//! Files that show which nodes are alive.

mod note;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, DirEntry, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use duroxide_provider::store::{FailureClass, StoreFailure};
use duroxide_store::{NodeLock, NodeLocks};

use self::note::lock_with_note;

/// A file next to the database for each node, `{database}-node-{name}`, locked for as long as the node lives. The
/// system releases such a lock when the process ends in any way; a process that is only suspended keeps it.
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
        self.database.with_file_name(self.file_name(node))
    }

    /// The name of a node's file. That of the empty name begins the names of all of them.
    fn file_name(&self, node: &str) -> OsString {
        let mut name = self.database.file_name().unwrap_or_default().to_owned();
        name.push("-node-");
        name.push(node);
        name
    }

    /// The node whose file this is.
    fn node_of(&self, entry: &DirEntry) -> Option<String> {
        let (name, prefix) = (entry.file_name(), self.file_name(""));
        Some(name.to_str()?.strip_prefix(prefix.to_str()?)?.to_owned())
    }
}

/// How often a file is opened again because it was removed before it could be locked.
const HOLD_TRIES: usize = 8;

/// Locks the file at `path`, which another try of the same node may have left there. `None` if the file was removed
/// before it was locked, by a process that found it unlocked.
fn lock_in_place(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(is_in_place(&file, path).then_some(file)),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => {
            // Files cannot be locked here, so the file shows nothing.
            let _ = fs::remove_file(path);
            Err(error)
        }
    }
}

/// Whether a file is the one that its path names.
#[cfg(unix)]
fn is_in_place(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().and_then(|ours| Ok(same(ours, fs::metadata(path)?))).unwrap_or(false)
}

/// Whether a file is the one that its path names. Only a node makes its file anew, and not while it has the old one.
#[cfg(not(unix))]
fn is_in_place(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Whether a process holds this file and has touched it within the last `within`.
fn is_held(path: &Path, within: Duration) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    let touched = file.metadata().and_then(|data| data.modified());
    // A time in the future has just passed.
    let is_old = touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > within));
    // A shared lock, so that two processes that check do not see each other as the holder.
    !is_old && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

impl NodeLocks for NodeFiles {
    /// An existing file was left by an earlier try to join, of the same node: names are random.
    fn hold(&self, node: &str) -> Result<NodeLock, StoreFailure> {
        if node.is_empty() || !node.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            let message = format!("'{node}' cannot be a node's name: letters, digits and '-' only");
            return Err(StoreFailure::new(FailureClass::Permanent, message));
        }
        let path = self.path(node);
        let cannot = |why: &dyn std::fmt::Display| {
            let message = format!("cannot lock {}: {why}", path.display());
            StoreFailure::new(FailureClass::Retryable, message)
        };
        for _ in 0..HOLD_TRIES {
            if let Some(file) = lock_in_place(&path).map_err(|error| cannot(&error))? {
                self.note_join_attempt(node);
                return Ok(lock_with_note(file));
            }
        }
        Err(cannot(&"it is removed again and again"))
    }

    /// Without its file it is unknown whether the node lives: it may use the database by another path.
    fn take_over(&self, node: &str) -> Option<NodeLock> {
        let path = self.path(node);
        let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        file.try_lock().ok()?;
        // The node may have joined again with a new file, after this one was removed.
        is_in_place(&file, &path).then(|| lock_with_note(file))
    }

    /// Deletes the file before releasing the lock, so that no takeover finds a node that has left.
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

    /// The file's modification time is the time of the attempt. If it cannot be set, the node counts as alive for a
    /// shorter time.
    fn note_join_attempt(&self, node: &str) {
        if let Ok(file) = OpenOptions::new().write(true).open(self.path(node)) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    fn has_joining_node(&self, joined: &BTreeSet<String>, within: Duration) -> bool {
        let folder = self.database.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return false };
        let is_joining = |entry: DirEntry| {
            self.node_of(&entry).is_some_and(|node| !joined.contains(&node)) && is_held(&entry.path(), within)
        };
        entries.flatten().any(is_joining)
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

    /// D10
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

    /// A try to join that could neither succeed nor be undone leaves its file.
    #[test]
    fn a_node_takes_the_file_that_its_earlier_try_left() {
        let folder = tempfile::tempdir().unwrap();
        let files = NodeFiles::beside(&folder.path().join("a.db"));
        drop(files.hold("n1").unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let held = files.hold("n1").unwrap();
        assert!(files.take_over("n1").is_none());
        files.discard("n1", held);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// A process that opened the file before its removal may lock it, and would take a node for dead that has joined again.
    #[cfg(unix)]
    #[test]
    fn a_lock_on_a_file_that_was_removed_and_made_anew_shows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db-node-n1");
        let removed = File::create(&path).unwrap();
        assert!(is_in_place(&removed, &path));
        fs::remove_file(&path).unwrap();
        assert!(!is_in_place(&removed, &path));
        let _new = File::create(&path).unwrap();
        assert!(!is_in_place(&removed, &path));
    }

    /// S3.48
    #[test]
    fn a_node_that_holds_its_lock_and_is_not_listed_is_joining() {
        const MINUTE: Duration = Duration::from_secs(60);
        let folder = tempfile::tempdir().unwrap();
        let files = NodeFiles::beside(&folder.path().join("a.db"));
        let others = NodeFiles::beside(&folder.path().join("other.db"));
        let (nobody, listed) = (BTreeSet::new(), BTreeSet::from(["n1".to_owned()]));
        assert!(!files.has_joining_node(&nobody, MINUTE));

        let held = files.hold("n1").unwrap();
        assert!(files.has_joining_node(&nobody, MINUTE));
        assert!(!files.has_joining_node(&listed, MINUTE), "it has joined");
        assert!(!others.has_joining_node(&nobody, MINUTE), "its files are those of another store");

        let file = OpenOptions::new().write(true).open(files.path("n1")).unwrap();
        file.set_modified(SystemTime::now() - 2 * MINUTE).unwrap();
        assert!(!files.has_joining_node(&nobody, MINUTE), "it has given up");
        files.note_join_attempt("n1");
        assert!(files.has_joining_node(&nobody, MINUTE));
        drop((held, file));
        assert!(!files.has_joining_node(&nobody, MINUTE), "its process ended");
    }
}
