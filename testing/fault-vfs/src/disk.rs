//! A disk in memory: files, their durable content, and injected faults.

mod content;
mod handle;
mod locks;
mod shared_memory;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use self::{content::Content, locks::FileLocks, shared_memory::SharedMemory};
pub(crate) use self::{
    handle::{Handle, OpenError, OpenMode},
    locks::{Busy, LockLevel},
    shared_memory::SlotLock,
};
use crate::{DiskError, Fault, Operation, dice::Dice, vfs};

/// A disk in memory, registered with SQLite under a name of its own. See the [crate's documentation](crate).
#[derive(Clone)]
pub struct Disk {
    state: SharedState,
    vfs: String,
}

/// The unsynced changes that a power cut leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// Nothing.
    Synced,
    /// An arbitrary part: any sectors of 512 bytes, whole or torn, in any combination; any new or removed files.
    Torn {
        /// The same seed leaves the same part.
        seed: u64,
    },
}

impl Disk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::with_state(State::default())
    }

    fn with_state(state: State) -> Self {
        let state = SharedState(Arc::new(Mutex::new(state)));
        let vfs = vfs::register(&state);
        Self { state, vfs }
    }

    /// The name under which SQLite knows it.
    pub fn vfs(&self) -> &str {
        &self.vfs
    }

    /// The URL of a store in a file of this disk.
    pub fn url(&self, file: &str) -> String {
        format!("sqlite:{file}?vfs={}", self.vfs)
    }

    /// How many operations would have changed the disk so far, those that failed included.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Cuts the power at the n-th operation from now on, counted from 1. That operation and everything after it fails.
    /// A write that is cut may survive in part, as may everything else that was not synced.
    pub fn cut_power_at(&self, nth: u64) {
        let mut state = self.state.lock();
        state.cut_at = Some(state.operations + nth);
    }

    /// Whether there is power.
    pub fn has_power(&self) -> bool {
        self.state.lock().power
    }

    /// Lets operations fail. Replaces the faults that were injected before.
    pub fn inject(&self, fault: Fault) {
        let mut state = self.state.lock();
        state.fault = Some(fault);
        state.failures = 0;
    }

    /// How many operations have failed since the last [`Self::inject`].
    pub fn failures(&self) -> u64 {
        self.state.lock().failures
    }

    /// Has no operation fail any more.
    pub fn heal(&self) {
        self.state.lock().fault = None;
    }

    /// The disk after the power was cut now, or when it was. This one is left as it is: several outcomes of one cut may
    /// be looked at.
    pub fn after_power_cut(&self, survival: Survival) -> Self {
        Self::with_state(match survival {
            Survival::Synced => self.state.lock().synced(),
            Survival::Torn { seed } => self.state.lock().torn(&mut Dice::new(seed)),
        })
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Disk")
            .field("vfs", &self.vfs)
            .field("operations", &state.operations)
            .field("power", &state.power)
            .finish_non_exhaustive()
    }
}

/// A disk as SQLite's threads share it.
#[derive(Clone)]
pub(crate) struct SharedState(pub(crate) Arc<Mutex<State>>);

impl SharedState {
    /// Ignores a poisoned lock: a test that panicked elsewhere leaves the content of the disk consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open file of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandleId(u64);

/// Identifies a file independently of its name. Numbers are not used again.
type FileId = usize;

pub(crate) struct State {
    files: Vec<File>,
    directory: BTreeMap<String, FileId>,
    /// The directory as it was last synced.
    synced_directory: BTreeMap<String, FileId>,
    handles: u64,
    operations: u64,
    cut_at: Option<u64>,
    power: bool,
    fault: Option<Fault>,
    failures: u64,
}

#[derive(Default)]
struct File {
    content: Content,
    locks: FileLocks,
    shared_memory: SharedMemory,
}

/// The outcome of an operation that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Happens,
    /// The power goes while it happens.
    IsCut,
}

impl Default for State {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            directory: BTreeMap::new(),
            synced_directory: BTreeMap::new(),
            handles: 0,
            operations: 0,
            cut_at: None,
            power: true,
            fault: None,
            failures: 0,
        }
    }
}

impl State {
    /// Counts an operation and decides its outcome.
    fn attempt(&mut self, operation: Operation) -> Result<Fate, DiskError> {
        self.check_power()?;
        self.operations += 1;
        if self.cut_at.is_some_and(|at| at <= self.operations) {
            self.power = false;
            return Ok(Fate::IsCut);
        }
        let Some(error) = self.fault.as_mut().and_then(|fault| fault.strikes(operation)) else {
            return Ok(Fate::Happens);
        };
        self.failures += 1;
        Err(error)
    }

    fn check_power(&self) -> Result<(), DiskError> {
        if self.power { Ok(()) } else { Err(DiskError::Io) }
    }

    fn add_file(&mut self, content: Content) -> FileId {
        self.files.push(File { content, ..File::default() });
        self.files.len() - 1
    }

    fn sync_directory(&mut self) {
        self.synced_directory = self.directory.clone();
    }

    fn synced(&self) -> Self {
        self.surviving(&self.synced_directory, Content::synced)
    }

    fn torn(&self, dice: &mut Dice) -> Self {
        let names: BTreeSet<&String> = self.directory.keys().chain(self.synced_directory.keys()).collect();
        let mut directory = BTreeMap::new();
        for name in names {
            let entry = match dice.roll(2) {
                0 => self.directory.get(name),
                _ => self.synced_directory.get(name),
            };
            directory.extend(entry.map(|file| (name.clone(), *file)));
        }
        self.surviving(&directory, |content| content.torn(dice))
    }

    fn surviving(
        &self,
        directory: &BTreeMap<String, FileId>,
        mut content: impl FnMut(&Content) -> Content,
    ) -> Self {
        let mut state = Self::default();
        for (name, file) in directory {
            let Some(file) = self.files.get(*file) else { continue };
            let file = state.add_file(content(&file.content));
            state.directory.insert(name.clone(), file);
        }
        state.sync_directory();
        state
    }
}
