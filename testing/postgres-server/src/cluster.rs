//! A data folder and the server that runs on it.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
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

/// Another process may take the port between our look and the start.
const PORT_ATTEMPTS: usize = 5;

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    _watchdog: Watchdog,
}

impl Cluster {
    pub(crate) fn start(programs: &Programs) -> Self {
        let user = User::choose();
        let folder = std::env::temp_dir().join(format!("duroxide-postgres-{}", std::process::id()));
        // A folder of an earlier process with this id.
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).expect("a temporary folder");
        let watchdog = Watchdog::start(programs, user, &folder);
        let data = folder.join("data");
        copy(&template(programs, user), &data);
        fs::write(data.join("postgresql.auto.conf"), SETTINGS).expect("settings are written");
        user.own(&folder);
        let port = (0..PORT_ATTEMPTS).find_map(|_| start_server(programs, user, &folder));
        let port = port.unwrap_or_else(|| {
            panic!(
                "the server does not start: {}",
                fs::read_to_string(folder.join("log")).unwrap_or_default()
            )
        });
        Self { folder, port, _watchdog: watchdog }
    }
}

/// Starts the server and waits until it takes connections. Returns its port.
fn start_server(programs: &Programs, user: User, folder: &Path) -> Option<u16> {
    let port = free_port();
    let socket = folder.display();
    let options =
        format!("-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='{socket}'");
    let mut command = user.command(programs.path("pg_ctl"));
    command.args(["start", "-w", "-s", "-o", &options, "-D"]).arg(folder.join("data"));
    command.arg("-l").arg(folder.join("log")).current_dir("/");
    command.stdin(std::process::Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(port)
}

fn free_port() -> u16 {
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
    initdb.args(["--no-sync", "--no-instructions", "--wal-segsize=4", "-D"]).arg(&made);
    run(initdb.current_dir("/"));
    copy(&made, &copied);
    fs::remove_dir_all(&made).ok();
    // Another test process may have been faster; its template is as good.
    if fs::rename(&copied, &template).is_err() {
        fs::remove_dir_all(&copied).ok();
    }
    template
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// The folder `target`, as seen from the test program in `target/debug/deps`.
fn build_folder() -> PathBuf {
    let program = std::env::current_exe().expect("a running program");
    let folder = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    folder.map_or_else(std::env::temp_dir, Path::to_path_buf)
}
