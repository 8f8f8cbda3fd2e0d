//! [`replay_dir`] and [`replay`]: replay recorded histories with the current code.

use std::{
    error::Error,
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use duroxide_core::{
    Clock, Event, RuntimeLimits, Timestamp,
    engine::{Divergence, Setup, check_replay},
};
use duroxide_runtime::{OrchestrationRegistry, client::RecordedHistory, typed::Handlers};
use semver::Version;

/// Why a history cannot be replayed with the given handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// The code does not make the calls of the history.
    Diverges(Box<Divergence>),
    /// No handler has this name and version.
    NoHandler {
        /// The orchestration's name.
        name: String,
        /// The handler version.
        version: String,
    },
    /// The history cannot be read.
    Unreadable(String),
}

/// Replays the history of a running or ended instance, and compares the code's actions with the recorded events.
///
/// # Errors
/// The first difference, or a missing handler.
pub fn replay(history: RecordedHistory, orchestrations: &OrchestrationRegistry) -> Result<(), ReplayError> {
    let RecordedHistory { orchestration: name, version, key_values, events, .. } = history;
    let parsed = Version::parse(&version).ok();
    let Some(handler) = parsed.and_then(|version| orchestrations.resolve_handler_exact(&name, &version))
    else {
        return Err(ReplayError::NoHandler { name, version });
    };
    let setup = Setup {
        handler,
        clock: Arc::new(ClockOf::the_last(&events)),
        limits: RuntimeLimits::default(),
        worker_id: None,
        kv: key_values,
    };
    check_replay(events, setup).map_err(ReplayError::Diverges)
}

/// Replays every recorded history (`*.json`) in a folder. Call it in a test:
///
/// ```no_run
/// # use duroxide_runtime::typed::Handlers;
/// # fn handlers() -> Handlers { Handlers::new() }
/// #[test]
/// fn running_instances_can_go_on() {
///     duroxide_testing::replay_dir("tests/histories", handlers()).unwrap();
/// }
/// ```
///
/// Returns the number of histories. [`Client::export_history`](duroxide_runtime::Client::export_history) writes them.
///
/// # Errors
/// Every file that cannot be replayed, with its first difference. A folder without histories is an error too.
pub fn replay_dir(folder: impl AsRef<Path>, handlers: Handlers) -> Result<usize, ReplayDirError> {
    let folder = folder.as_ref();
    let (_, orchestrations) = handlers.build().map_err(|error| ReplayDirError(error.to_string()))?;
    let paths = histories_in(folder)
        .map_err(|error| ReplayDirError(format!("cannot read folder {}: {error}", folder.display())))?;
    if paths.is_empty() {
        return Err(ReplayDirError(format!("there is no recorded history (*.json) in {}", folder.display())));
    }
    let failed: Vec<String> = paths
        .iter()
        .filter_map(|path| replay_file(path, &orchestrations).err().map(|error| (path, error)))
        .map(|(path, error)| format!("{}: {error}", path.display()))
        .collect();
    if failed.is_empty() {
        return Ok(paths.len());
    }
    let (count, total) = (failed.len(), paths.len());
    Err(ReplayDirError(format!("{count} of {total} histories cannot be replayed:\n{}", failed.join("\n"))))
}

/// The paths of the histories in a folder, sorted by name.
fn histories_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn replay_file(path: &Path, orchestrations: &OrchestrationRegistry) -> Result<(), ReplayError> {
    let text = fs::read_to_string(path).map_err(|error| ReplayError::Unreadable(error.to_string()))?;
    let history =
        RecordedHistory::from_json(&text).map_err(|error| ReplayError::Unreadable(error.to_string()))?;
    replay(history, orchestrations)
}

/// A clock that always shows the time of the last event of a history.
struct ClockOf(Timestamp);

impl ClockOf {
    fn the_last(events: &[Event]) -> Self {
        Self(Timestamp::from_millis(events.last().map_or(0, |last| last.timestamp_ms)))
    }
}

impl Clock for ClockOf {
    fn now(&self) -> Timestamp {
        self.0
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diverges(divergence) => divergence.fmt(f),
            Self::NoHandler { name, version } => {
                write!(f, "no handler of orchestration '{name}' {version} is registered")
            }
            Self::Unreadable(reason) => write!(f, "the history cannot be read: {reason}"),
        }
    }
}

impl Error for ReplayError {}

/// The files of a folder that cannot be replayed. `Debug` equals `Display`, so that `unwrap` in a test shows it.
pub struct ReplayDirError(String);

impl fmt::Display for ReplayDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ReplayDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ReplayDirError {}
