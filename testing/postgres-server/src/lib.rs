//! A throw-away PostgreSQL server for tests.
//!
//! [`server`] gives the server that the program `postgres-server` has started for a whole test run, or starts one for this
//! test process. [`Server::own`] starts another one, for tests that stop, restart or promote it. A server listens on a
//! Unix socket in its own folder and on a free loopback port, so several servers can run at the same time. A watchdog process stops
//! the server and deletes its folder when the process that started it ends, however that ends.
//!
//! The installed programs are used (`/usr/lib/postgresql/*/bin`, or those in `PATH`), or those in the folder that
//! `DUROXIDE_TEST_POSTGRES_PROGRAMS` names. Where PostgreSQL is not installed,
//! [`server`] returns `None` and the test skips itself with a message, unless `CI=true`: there a missing server fails the
//! test.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test code: a broken expectation is a failed test"
)]

mod address;
mod cluster;
mod control;
mod copies;
mod pooler;
mod programs;
mod user;
mod watchdog;

use std::{
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

pub use address::Address;
use cluster::Cluster;
pub use control::Frozen;
pub use copies::copies_of;
pub use pooler::Pooler;
use programs::Programs;

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: Address,
    /// `None` if another process has started the server.
    cluster: Option<Cluster>,
}

/// The server of this test run, or one for this test process, which the first call starts. `None` if PostgreSQL is not
/// installed. Tests share it, each with a schema of its own: see [`Server::own`] for those that harm it.
///
/// # Panics
/// If PostgreSQL is not installed and `CI=true`, or if the server does not start.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let shared = || Address::of_test_run().map(|address| Server { address, cluster: None });
    SERVER.get_or_init(|| shared().or_else(Server::own)).as_ref()
}

impl Server {
    /// Starts a server that belongs to the caller alone. It ends when this value is dropped. `None` if PostgreSQL is not
    /// installed.
    ///
    /// # Panics
    /// If PostgreSQL is not installed and `CI=true`, or if the server does not start.
    pub fn own() -> Option<Self> {
        let Some(programs) = Programs::find() else {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "PostgreSQL is not installed, and CI must not skip its tests: install Debian's `postgresql`"
            );
            eprintln!(
                "\n*** SKIPPED: PostgreSQL is not installed (Debian: apt-get install postgresql) ***\n"
            );
            return None;
        };
        Some(Self::of(Cluster::start(programs)))
    }

    fn of(cluster: Cluster) -> Self {
        Self { address: cluster.address(), cluster: Some(cluster) }
    }

    /// Where the server listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A connection string for the Unix socket, as a superuser.
    pub fn socket_url(&self) -> String {
        let folder = self.address.folder.display();
        format!("host={folder} port={} user=postgres dbname=postgres", self.address.port)
    }

    /// A connection string for the loopback port, as a superuser.
    pub fn tcp_url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.address.port)
    }

    /// A schema name that no other test uses, in this process or in another one. The schema does not exist yet.
    pub fn fresh_schema(&self) -> String {
        static MADE: AtomicU64 = AtomicU64::new(0);
        // A process id may be given again in a long test run, but not within a millisecond.
        static BEGAN: OnceLock<u128> = OnceLock::new();
        let since_epoch = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
        let began = BEGAN.get_or_init(|| since_epoch().as_millis());
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        format!("test_{}_{began}_{number}", std::process::id())
    }

    /// The folder of data, socket and log.
    pub fn folder(&self) -> &Path {
        &self.address.folder
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.address.folder.join("log")
    }
}
