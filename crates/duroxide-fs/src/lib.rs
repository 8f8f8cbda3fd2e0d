//! A provider on plain files, for inspection, teaching and tests.
//!
//! Everything is text that a person can read, in one folder per instance:
//!
//! ```text
//! store/
//!   format.json                       which version of this layout
//!   lock                              held by the process that uses the store
//!   unfinished.json                   the steps of a round that is being written
//!   instances/+order-17/
//!     instance.json                   name, version, lock, custom status, key-value state
//!     execution-1.json                status, output, pinned version
//!     history-1.jsonl                 one event per line
//!     inbox/00000000000000000003.json       one message: its state, then the message itself
//!     activities/00000000000000000001.json  one activity, likewise
//!   dead-letters/00000000000000000001.json
//! ```
//!
//! Instance ids become file names: letters, digits, `-` and `_` stay, a capital gets a `+` before it (so that names differ on
//! file systems that ignore case), everything else is percent-encoded, and very long ids end in a hash.
//!
//! # Guarantees
//!
//! The same as SQLite: an acknowledged call survives a kill and a power failure, and callers never see half of a round.
//! A file is replaced atomically: the new content goes to a temporary file, which is synced and renamed over the old
//! one, and then the folder is synced. Several files cannot be changed at once. `duroxide-peek-lock` writes them in an
//! order in which a crash does no harm, and repeats unfinished rounds. A person who reads the files meanwhile sees the
//! steps of a round one after the other.
//!
//! # Limits
//!
//! One process at a time uses a store. Opening a store reads all of it into memory, where it stays. Each change costs
//! several disk syncs. Use SQLite for a store that has to be fast, large or shared.

// No wildcard arm hides a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod error;
mod file;
mod item_file;
mod layout;
mod load;
mod lock_file;
mod provider;
mod store;

pub use error::FsError;
pub use provider::{FsOptions, FsProvider};
