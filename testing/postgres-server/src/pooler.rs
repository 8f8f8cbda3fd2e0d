//! PgBouncer in front of a server, in transaction mode.

use std::{
    fs,
    net::TcpStream,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    Server,
    cluster::{free_port, fresh_folder},
    user::User,
};

/// Debian's folder is not in everybody's `PATH`.
const DEBIAN: &str = "/usr/sbin/pgbouncer";
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// Ends with the standard input of this script, which ends with the process that started it.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
folder=$1; shift
"$@" < /dev/null & pooler=$!
read -r _
kill -9 "$pooler"
rm -rf "$folder"
"#;

/// A running pooler. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    script: Child,
}

impl Pooler {
    /// Starts PgBouncer with few connections to the server, so that transactions of one client meet different ones. `None` if
    /// it is not installed.
    ///
    /// # Panics
    /// If PgBouncer is not installed and `CI=true`, or if it does not start.
    pub fn start(server: &Server) -> Option<Self> {
        Self::start_with(server, "")
    }

    /// Like [`Self::start`], with more settings.
    ///
    /// # Panics
    /// Like [`Self::start`].
    pub fn start_with(server: &Server, more: &str) -> Option<Self> {
        let Some(program) = find() else {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "PgBouncer is not installed, and CI must not skip its tests: install Debian's `pgbouncer`"
            );
            eprintln!("\n*** SKIPPED: PgBouncer is not installed (Debian: apt-get install pgbouncer) ***\n");
            return None;
        };
        let (folder, port, user) = (fresh_folder(), free_port(), User::choose());
        let settings = format!(
            "[databases]\npostgres = host={} port={} dbname=postgres user=postgres\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 3\nserver_round_robin = 1\nlogfile = {}\n{more}\n",
            server.folder().display(),
            server.address().port,
            folder.join("log").display(),
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).expect("settings are written");
        user.own(&folder);
        let mut pooler = user.command(program);
        pooler.arg("-q").arg(&file);
        let mut script = Command::new("sh");
        script.args(["-c", SCRIPT, "pooler"]).arg(&folder).arg(pooler.get_program()).args(pooler.get_args());
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        script.process_group(0).current_dir("/");
        let script = script.spawn().expect("a shell starts");
        let pooler = Self { port, script };
        pooler.wait();
        Some(pooler)
    }

    fn wait(&self) {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < STARTS_WITHIN, "PgBouncer does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A connection string for the pooler.
    pub fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join("pgbouncer"));
    in_path.chain([PathBuf::from(DEBIAN)]).find(|program| program.is_file())
}
