//! A data folder and the server that runs on it.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    Address,
    programs::Programs,
    user::{User, run},
    watchdog::Watchdog,
};

/// Small, but as durable as a real one: the tests shall wait for the disk where users wait.
const SETTINGS: &str = "
fsync = on
shared_buffers = 32MB
max_connections = 50
max_wal_size = 256MB
autovacuum_naptime = 10s
log_min_messages = warning
deadlock_timeout = 200ms
";

/// Another process may take the port between our check and the start.
const PORT_ATTEMPTS: usize = 5;

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) programs: Programs,
    pub(crate) user: User,
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    _watchdog: Watchdog,
}

impl Cluster {
    pub(crate) fn start(programs: Programs) -> Self {
        Self::start_on(programs, |programs, user, data| {
            copy(&template(programs, user), data);
            fs::write(data.join("postgresql.auto.conf"), SETTINGS).expect("settings are written");
        })
    }

    /// Starts a server on the data folder that `fill` makes.
    pub(crate) fn start_on(programs: Programs, fill: impl FnOnce(&Programs, User, &Path)) -> Self {
        let user = User::choose();
        let folder = fresh_folder();
        let watchdog = Watchdog::start(&programs, user, &folder);
        user.own(&folder);
        fill(&programs, user, &folder.join("data"));
        user.own(&folder);
        let mut cluster = Self { programs, user, folder, port: 0, _watchdog: watchdog };
        if (0..PORT_ATTEMPTS).all(|_| !cluster.start_on_free_port()) {
            panic!("the server does not start: {}", cluster.log());
        }
        cluster
    }

    fn start_on_free_port(&mut self) -> bool {
        self.port = free_port();
        self.try_start()
    }

    /// Starts the server on its port and waits until it takes connections.
    pub(crate) fn try_start(&self) -> bool {
        let (port, socket) = (self.port, self.folder.display());
        let options =
            format!("-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='{socket}'");
        let mut command = self.control("start");
        command.args(["-o", &options, "-l"]).arg(self.folder.join("log"));
        command.status().is_ok_and(|status| status.success())
    }

    /// `pg_ctl` with one of its actions. It waits until the action is done.
    pub(crate) fn control(&self, action: &str) -> Command {
        let mut command = self.user.command(self.programs.path("pg_ctl"));
        command.args([action, "-w", "-s", "-D"]).arg(self.folder.join("data"));
        // The folder may be one that the other user cannot enter.
        command.current_dir("/").stdin(std::process::Stdio::null());
        command
    }

    pub(crate) fn address(&self) -> Address {
        Address { folder: self.folder.clone(), port: self.port }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

pub(crate) fn fresh_folder() -> PathBuf {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("duroxide-postgres-{}-{number}", std::process::id()));
    // A folder of an earlier process with this id.
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port");
    listener.local_addr().expect("a bound address").port()
}

/// An initialised data folder, which is made once for each build folder: `initdb` takes seconds, a copy does not.
fn template(programs: &Programs, user: User) -> PathBuf {
    let home = build_folder().join("postgres-server");
    let template = home.join(programs.version());
    if template.is_dir() {
        return template;
    }
    fs::create_dir_all(&home).expect("a folder for templates");
    let name = format!("duroxide-initdb-{}", std::process::id());
    let (made, copied) = (std::env::temp_dir().join(&name), home.join(&name));
    fs::create_dir_all(&made).expect("a temporary folder");
    user.own(&made);
    let mut initdb = user.command(programs.path("initdb"));
    initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    initdb.args(["--no-sync", "--wal-segsize=4", "-D"]).arg(&made);
    run(initdb.current_dir("/"));
    copy(&made, &copied);
    fs::remove_dir_all(&made).ok();
    // Another test process may have been faster; its template is as good.
    if fs::rename(&copied, &template).is_err() {
        fs::remove_dir_all(&copied).ok();
    }
    template
}

pub(crate) fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// The folder `target`, as seen from the test program in `target/debug/deps`.
fn build_folder() -> PathBuf {
    let program = std::env::current_exe().expect("a running program");
    let folder = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    folder.map_or_else(std::env::temp_dir, Path::to_path_buf)
}
