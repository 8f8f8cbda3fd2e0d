//! Controls a test's own server: stop, restart, promote and the like.

use std::{fs, process::Command};

use crate::{
    Server,
    cluster::{Cluster, copy},
    user::{run, run_quietly},
};

/// A standby that follows at once and is waited for: `synchronous_standby_names` of its primary.
const STANDBY: &str = "duroxide_standby";

impl Server {
    /// Kills the server's processes and starts it again: it recovers from its log, as after a crash.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`], or does not start.
    pub fn restart_immediately(&self) {
        let cluster = self.cluster();
        self.stop_immediately();
        assert!(cluster.try_start(), "the server does not start: {}", cluster.log());
    }

    /// Kills the server's processes.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`], or does not stop.
    pub fn stop_immediately(&self) {
        run(self.cluster().control("stop").args(["-m", "immediate"]));
    }

    /// Adds settings, which take effect when the server starts again.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`].
    pub fn configure(&self, settings: &str) {
        let file = self.folder().join("data/postgresql.auto.conf");
        let before = fs::read_to_string(&file).expect("a server has settings");
        fs::write(&file, format!("{before}\n{settings}\n")).expect("settings are written");
        self.cluster().user.own(&file);
    }

    /// Lets the server offer TLS, with this certificate and its key as PEM texts. It is started again.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`], or does not start.
    pub fn offer_tls(&self, certificate: &str, key: &str) {
        let data = self.folder().join("data");
        fs::write(data.join("server.crt"), certificate).expect("a certificate is written");
        fs::write(data.join("server.key"), key).expect("a key is written");
        // The server takes no key that others can read.
        run(Command::new("chmod").arg("600").arg(data.join("server.key")));
        self.configure("ssl = on");
        self.cluster().user.own(&data.join("server.crt"));
        self.cluster().user.own(&data.join("server.key"));
        self.restart_immediately();
    }

    /// Requires a password over TCP. The socket stays open without one.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`].
    pub fn ask_for_passwords(&self) {
        self.let_in_over_tcp("host all all all scram-sha-256");
    }

    /// Refuses connections over TCP that are not encrypted.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`].
    pub fn require_tls(&self) {
        self.let_in_over_tcp("hostssl all all all trust");
    }

    fn let_in_over_tcp(&self, rule: &str) {
        let rules = format!("local all all trust\nlocal replication all trust\n{rule}\n");
        fs::write(self.folder().join("data/pg_hba.conf"), rules).expect("rules are written");
        run(&mut self.cluster().control("reload"));
    }

    /// A standby that follows this server. From here on this server answers a commit only when the standby has it. This server is
    /// stopped meanwhile: a copy of its files then makes a standby, without a tool that not every installation has.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`], or the standby does not start.
    pub fn synchronous_standby(&self) -> Self {
        let primary = self.cluster();
        let source = format!("{} application_name={STANDBY}", self.socket_url());
        run(primary.control("stop").args(["-m", "fast"]));
        let standby = Cluster::start_on(primary.programs.clone(), |_, _, data| {
            copy(&self.folder().join("data"), data);
            fs::write(data.join("standby.signal"), "").expect("a standby is marked");
            let file = data.join("postgresql.auto.conf");
            let before = fs::read_to_string(&file).expect("a server has settings");
            fs::write(&file, format!("{before}\nprimary_conninfo = '{source}'\n"))
                .expect("settings are written");
        });
        self.configure(&format!("synchronous_standby_names = '{STANDBY}'"));
        assert!(primary.try_start(), "the server does not start: {}", primary.log());
        Self::of(standby)
    }

    /// Makes a standby the primary.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`], or is no standby.
    pub fn promote(&self) {
        run(&mut self.cluster().control("promote"));
    }

    /// Stops all processes of the server where they are. Its connections stay open, and new ones are taken by the system and
    /// not answered. The server goes on when the returned value is dropped.
    ///
    /// # Panics
    /// If the server was not started by [`Server::own`], or does not run.
    pub fn freeze(&self) -> Frozen {
        let file = self.cluster().folder.join("data/postmaster.pid");
        let text = fs::read_to_string(file).expect("a running server has a file with its id");
        let postmaster = text.lines().next().unwrap_or_default().to_owned();
        // First the one that starts the others.
        signal("STOP", std::slice::from_ref(&postmaster));
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", &postmaster]).output();
        let children = String::from_utf8(children.expect("the system has ps").stdout).expect("numbers");
        let mut processes: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
        signal("STOP", &processes);
        processes.push(postmaster);
        Frozen { processes }
    }

    fn cluster(&self) -> &Cluster {
        self.cluster.as_ref().expect("a server of its own")
    }
}

/// A server whose processes are stopped.
#[derive(Debug)]
pub struct Frozen {
    processes: Vec<String>,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("CONT", &self.processes);
    }
}

/// Sends a signal. A process that has ended meanwhile needs none.
fn signal(name: &str, processes: &[String]) {
    run_quietly(Command::new("kill").arg(format!("-{name}")).args(processes));
}

impl Drop for Server {
    /// The watchdog would stop it too, but only when the process ends.
    fn drop(&mut self) {
        if let Some(cluster) = &self.cluster {
            run_quietly(cluster.control("stop").args(["-m", "immediate"]));
        }
    }
}
