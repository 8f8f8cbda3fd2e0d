//! Where a store is: URLs and paths.

use std::path::PathBuf;

use super::real_path::{real_path, without_file_scheme};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use crate::{SqliteError, error::sqlite_error, node_files::NodeFiles};

pub(crate) const OPEN: &str = "open";

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// In this process, for as long as its one connection lives.
    Memory,
    /// In a file.
    File {
        path: PathBuf,
        /// Whether a missing file is made.
        create: bool,
        /// The SQLite name of the file layer (VFS); `None` for the system's.
        vfs: Option<String>,
    },
}

impl Location {
    /// Reads `sqlite:path`, `sqlite://path`, `sqlite:///absolute/path` or `sqlite::memory:`, where the path may also be
    /// one of SQLite's own `file:` URIs, each with an optional
    /// query of `mode`, `cache` and, as in SQLite's own URIs, `vfs`: a file layer that this process registered.
    pub(crate) fn parse(url: &str) -> Result<Self, SqliteError> {
        let refuse = |why: &str| {
            let message = format!("{why} in store URL '{url}'; expected sqlite:path or sqlite::memory:");
            Err(SqliteError::permanent(OPEN, message))
        };
        let Some(rest) = url.strip_prefix("sqlite:") else { return refuse("no scheme 'sqlite:'") };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut mode = "rwc";
        let mut vfs = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("mode", value @ ("rwc" | "rw" | "memory")) => mode = value,
                ("mode", "ro") => return refuse("a store must be writable, but mode=ro"),
                ("cache", "shared" | "private") => {}
                ("vfs", name) if !name.is_empty() => vfs = Some(name.to_owned()),
                (key, value) => return refuse(&format!("unknown parameter {key}={value}")),
            }
        }
        let Some(path) = without_file_scheme(path) else { return refuse("a file on another host") };
        match (path, mode) {
            (path, _) if is_memory(path) => Ok(Self::Memory),
            (_, "memory") => Ok(Self::Memory),
            ("", _) => refuse("no path"),
            (path, mode) => Ok(Self::File { path: percent_decoded(path).into(), create: mode == "rwc", vfs }),
        }
    }

    /// The same store by the absolute path of its file, without symbolic links. Resolved once, when a store is opened:
    /// later connections and the files of nodes must belong to the same file, even if the working directory changes or
    /// other programs spell the path differently. A path that cannot be resolved is not changed, and [`Self::check`]
    /// reports why.
    pub(crate) fn resolve(self) -> Self {
        match self {
            Self::File { path, create, vfs: None } => {
                Self::File { path: real_path(&path).unwrap_or(path), create, vfs: None }
            }
            other @ (Self::File { vfs: Some(_), .. } | Self::Memory) => other,
        }
    }

    /// The file of the write-ahead log, in the folder in which SQLite found the database. Known only of the system's
    /// files.
    pub(crate) fn log(&self, conn: &Connection) -> Option<PathBuf> {
        match self {
            Self::File { vfs: None, .. } => conn.path().map(|path| format!("{path}-wal").into()),
            Self::Memory | Self::File { .. } => None,
        }
    }

    /// Finds the reasons behind SQLite's "unable to open database file". Never opens the file itself: closing any
    /// descriptor of it would drop the locks that SQLite holds on it in this process. Knows only the system's files.
    pub(super) fn check(&self) -> Result<(), SqliteError> {
        let Self::File { path, create, vfs: None } = self else { return Ok(()) };
        let refuse = |message: String| Err(SqliteError::permanent(OPEN, message));
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty())
            && !directory.is_dir()
        {
            let (path, directory) = (path.display(), directory.display());
            return refuse(format!(
                "cannot open {path}: directory {directory} does not exist; create it first"
            ));
        }
        if path.is_dir() {
            return refuse(format!("cannot open {}: it is a directory; name a file in it", path.display()));
        }
        if !create && !path.exists() {
            return refuse(format!(
                "cannot open {}: no such file; use mode=rwc to create it",
                path.display()
            ));
        }
        Ok(())
    }

    /// The lock files of nodes, next to a database in the system's files. Another file layer may keep its files
    /// anywhere.
    pub(crate) fn node_files(&self) -> Option<NodeFiles> {
        match self {
            Self::File { path, vfs: None, .. } => Some(NodeFiles::beside(path)),
            Self::File { vfs: Some(_), .. } | Self::Memory => None,
        }
    }

    /// The length of the log file. `None` without a log, or with another file layer.
    pub(crate) fn log_bytes(&self) -> Option<u64> {
        let Self::File { path, vfs: None, .. } = self else { return None };
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        std::fs::metadata(log).ok().map(|log| log.len())
    }

    /// Opens a connection to the file, if the store is in one.
    pub(super) fn open_file(&self, flags: OpenFlags) -> Option<rusqlite::Result<Connection>> {
        // No URI flag: the path is used literally, with all its characters.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match self {
            Self::Memory => None,
            Self::File { path, vfs: None, .. } => Some(Connection::open_with_flags(path, flags)),
            Self::File { path, vfs: Some(vfs), .. } => {
                Some(Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()))
            }
        }
    }

    /// An error of opening this store.
    pub(super) fn open_error(&self, error: &Error) -> SqliteError {
        if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
            return self.refused("it is not a SQLite database; give another path or move the file away");
        }
        SqliteError { message: format!("cannot open {self}: {error}"), ..sqlite_error(OPEN, error) }
    }

    /// The error for a store that cannot be used.
    pub(super) fn refused(&self, why: &str) -> SqliteError {
        SqliteError::permanent(OPEN, format!("cannot open {self}: {why}"))
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => f.write_str("the in-memory store"),
            Self::File { path, .. } => path.display().fmt(f),
        }
    }
}

/// Whether a path means `:memory:`, however many colons and slashes the URL put before it (`sqlite:::memory:`,
/// `sqlite:///:memory:`). No user means a file of that name.
fn is_memory(path: &str) -> bool {
    path.strip_suffix(":memory:").is_some_and(|before| before.chars().all(|c| matches!(c, ':' | '/')))
}

/// `%20` is a space; a `%` that starts no such code is literal.
fn percent_decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, create: bool) -> Location {
        Location::File { path: path.into(), create, vfs: None }
    }

    #[test]
    fn urls_name_files_and_memory() {
        for (url, expected) in [
            ("sqlite:orders.db", file("orders.db", true)),
            ("sqlite:./a/b.db", file("./a/b.db", true)),
            ("sqlite:/var/lib/orders.db", file("/var/lib/orders.db", true)),
            ("sqlite://orders.db", file("orders.db", true)),
            ("sqlite:///var/lib/orders.db", file("/var/lib/orders.db", true)),
            ("sqlite:orders.db?mode=rwc", file("orders.db", true)),
            ("sqlite:orders.db?mode=rw&cache=shared", file("orders.db", false)),
            ("sqlite:my%20orders.db", file("my orders.db", true)),
            ("sqlite:file:orders.db", file("orders.db", true)),
            ("sqlite:file:/var/lib/orders.db?mode=rw", file("/var/lib/orders.db", false)),
            ("sqlite:file:///var/lib/orders.db", file("/var/lib/orders.db", true)),
            ("sqlite:file://localhost/var/lib/orders.db", file("/var/lib/orders.db", true)),
            ("sqlite:file::memory:?cache=shared", Location::Memory),
            ("sqlite:100%.db", file("100%.db", true)),
            ("sqlite::memory:", Location::Memory),
            ("sqlite://:memory:", Location::Memory),
            ("sqlite:::memory:", Location::Memory),
            ("sqlite:///:memory:", Location::Memory),
            ("sqlite:./:memory:", file("./:memory:", true)),
            ("sqlite:my:memory:", file("my:memory:", true)),
            ("sqlite::memory:?cache=shared", Location::Memory),
            ("sqlite:x?mode=memory&cache=private", Location::Memory),
        ] {
            assert_eq!(Location::parse(url).unwrap(), expected, "{url}");
        }
    }

    /// The working directory may be another one later.
    #[test]
    fn a_store_is_opened_by_its_absolute_path() {
        let Location::File { path, .. } = file("orders.db", true).resolve() else { panic!() };
        assert!(path.is_absolute() && path.ends_with("orders.db"), "{}", path.display());
        let unreachable = file("no/such/folder/orders.db", true);
        assert_eq!(unreachable.clone().resolve(), unreachable, "its check says what is wrong");
    }

    #[test]
    fn a_url_may_name_a_file_layer() {
        let expected = Location::File { path: "a.db".into(), create: true, vfs: Some("other".to_owned()) };
        assert_eq!(Location::parse("sqlite:a.db?vfs=other").unwrap(), expected);
    }

    #[test]
    fn other_urls_are_refused_by_name() {
        for (url, text) in [
            ("orders.db", "no scheme"),
            ("postgres://x", "no scheme"),
            ("sqlite:", "no path"),
            ("sqlite:a.db?mode=ro", "must be writable"),
            ("sqlite:a.db?speed=fast", "unknown parameter speed=fast"),
            ("sqlite:file://server/orders.db", "another host"),
            ("sqlite:a.db?vfs=", "unknown parameter vfs="),
        ] {
            let error = Location::parse(url).unwrap_err();
            assert!(error.message.contains(text) && error.message.contains(url), "{error}");
            assert!(!error.retryable);
        }
    }
}
