//! A throw-away PostgreSQL server for tests.
//!
//! [`server`] starts one server for the test process. It listens on a Unix socket in its own folder and on a free
//! loopback port, so servers of several test processes run beside each other. A watchdog process stops the server and
//! deletes its folder when the test process ends, however it ends.
//!
//! The installed programs are used (`/usr/lib/postgresql/*/bin`, or those in `PATH`). Where PostgreSQL is not installed,
//! [`server`] returns `None` and the test skips itself with a message, unless `CI=true`: there a missing server fails the
//! test.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test code: a broken expectation is a failed test"
)]

mod cluster;
mod programs;
mod user;
mod watchdog;

use std::{
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use cluster::Cluster;
use programs::Programs;

/// A running server.
#[derive(Debug)]
pub struct Server {
    cluster: Cluster,
    schemas: AtomicU64,
}

/// The server of this test process, which the first call starts. `None` if PostgreSQL is not installed.
///
/// # Panics
/// If PostgreSQL is not installed and `CI=true`, or if the server does not start.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

fn start() -> Option<Server> {
    let Some(programs) = Programs::find() else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "PostgreSQL is not installed, and CI must not skip its tests: install Debian's `postgresql`"
        );
        eprintln!("\n*** SKIPPED: PostgreSQL is not installed (Debian: apt-get install postgresql) ***\n");
        return None;
    };
    Some(Server { cluster: Cluster::start(&programs), schemas: AtomicU64::new(0) })
}

impl Server {
    /// A connection string for the Unix socket, as a superuser.
    pub fn socket_url(&self) -> String {
        let folder = self.cluster.folder.display();
        format!("host={folder} port={} user=postgres dbname=postgres", self.cluster.port)
    }

    /// A connection string for the loopback port, as a superuser.
    pub fn tcp_url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.cluster.port)
    }

    /// A schema name that no other test of this process uses. Nobody has made the schema.
    pub fn fresh_schema(&self) -> String {
        format!("test_{}", self.schemas.fetch_add(1, Ordering::Relaxed))
    }

    /// The folder of data, socket and log.
    pub fn folder(&self) -> &Path {
        &self.cluster.folder
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.cluster.folder.join("log")
    }
}
