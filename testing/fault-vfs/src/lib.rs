//! Disks for SQLite that lose power, fail and run full where a test says so.
//!
//! A [`Disk`] is a flat directory of files in memory, registered with SQLite as a VFS of its own. It keeps the bytes that have
//! been synced apart from those that have only been written:
//!
//! * [`Disk::cut_power_at`] ends everything at the n-th operation that would change the disk, and
//!   [`Disk::after_power_cut`] gives a new disk with the surviving bytes: exactly the synced ones, or in addition an arbitrary
//!   part of the rest, torn at the bounds of sectors and inside them;
//! * [`Disk::inject`] fails an operation, once or from then on, with an I/O error or a full disk.
//!
//! Reads never fail while there is power. Locks and shared memory work as on a real file system within one process, so
//! several connections may use a disk in WAL mode.
//!
//! ```
//! use fault_vfs::{Disk, Survival};
//! use rusqlite::{Connection, OpenFlags};
//!
//! let open = |disk: &Disk| Connection::open_with_flags_and_vfs("a.db", OpenFlags::default(), disk.vfs());
//! let disk = Disk::new();
//! open(&disk)?.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)")?;
//! disk.cut_power_at(1);
//! assert!(open(&disk)?.execute_batch("INSERT INTO t VALUES (1)").is_err());
//!
//! let disk = disk.after_power_cut(Survival::Synced);
//! let rows: i64 = open(&disk)?.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
//! assert_eq!(rows, 0);
//! # Ok::<(), rusqlite::Error>(())
//! ```
//!
//! # Code map
//!
//! `disk` is plain Rust and holds all behaviour: files, directory entries, locks, shared memory, faults. `vfs` gives it
//! to SQLite, and is the only part with `unsafe` code.

mod dice;
mod disk;
mod fault;
mod vfs;

pub use disk::{Disk, Survival};
pub use fault::{DiskError, Fault, Operation};
