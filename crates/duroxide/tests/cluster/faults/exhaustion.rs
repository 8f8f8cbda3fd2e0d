//! A server that runs out of disk space, or of connections, while two nodes work.

use std::{
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
    process::Command,
};

use duroxide::{Client, ClientError, EventKind, providers::postgres::PostgresProvider};
use duroxide_postgres::OpenError;
use postgres_server::Server;

use crate::{
    faults::{COPIES, Nodes, check},
    luck::Luck,
    mix,
    schema::{Schema, options_in},
};

/// A small disk for a tablespace. It can be filled and emptied.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with a message, if mounting is not allowed. With `CI=true` it fails instead.
    fn mount(server: &Server) -> Option<Self> {
        let folder = server.folder().join("small");
        fs::create_dir(&folder).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=32m,mode=0777", "tmpfs"];
        if !Command::new("mount").args(mount).arg(&folder).status().is_ok_and(|status| status.success()) {
            let is_ci = std::env::var("CI").as_deref() == Ok("true");
            assert!(!is_ci, "a small disk cannot be mounted, and CI must not skip its test: run it as root");
            eprintln!("\n*** SKIPPED: a small disk cannot be mounted, which takes root ***\n");
            return None;
        }
        let disk = Self(folder);
        let data = server.folder().join("data");
        let owned = Command::new("chown").arg("--reference").arg(data).arg(&disk.0).status();
        assert!(owned.unwrap().success());
        Some(disk)
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Leaves no byte free.
    fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        for chunk in [1 << 20, 4 << 10, 1] {
            while ballast.write_all(&vec![0; chunk]).is_ok() {}
        }
    }

    fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server may still use it: it goes when the server does.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.display());
        }
    }
}

/// The instance that gets events without a wait.
const RECEIVER: &str = "Sequence-0";

/// Sends events that need new pages until one is refused. Returns how many were taken, and why that one was not.
async fn raise_until_refused(client: &Client) -> (usize, ClientError) {
    let mut luck = Luck::new(5);
    for taken in 0.. {
        // Digits that do not repeat: PostgreSQL compresses long texts.
        let data: String = (0..10_000).map(|_| luck.below(u64::MAX).to_string()).collect();
        if let Err(error) = client.raise_event(RECEIVER, &event(taken), data).await {
            return (taken, error);
        }
    }
    unreachable!("a full disk takes no end of events")
}

fn event(number: usize) -> String {
    format!("ballast-{number}")
}

/// How often each of the first events is in the history of their receiver.
async fn recorded(client: &Client, count: usize) -> Vec<usize> {
    let history = client.read_execution_history(RECEIVER, 1).await.unwrap();
    let names = history.iter().filter_map(|recorded| match &recorded.kind {
        EventKind::ExternalEvent { name, .. } => Some(name.clone()),
        _ => None,
    });
    let names: Vec<String> = names.collect();
    (0..count).map(|number| names.iter().filter(|name| **name == event(number)).count()).collect()
}

/// S4.20, 23.2: nothing is lost or doubled, and no restart is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_fails_calls_and_loses_nothing() {
    let Some(server) = Server::own() else { return };
    let Some(disk) = SmallDisk::mount(&server) else { return };
    let url = format!("{} options='-c default_tablespace=small'", server.tcp_url());
    let schema = Schema::on(&server, &url);
    let tablespace = format!("CREATE TABLESPACE small LOCATION '{}'", disk.0.display());
    schema.admin().await.batch_execute(&tablespace).await.unwrap();
    let client = Client::new(schema.open().await);
    mix::start(&client, COPIES).await;
    let nodes = Nodes::start(&schema).await;
    schema.reach_notes(COPIES * 5).await;
    disk.fill();
    let (taken, error) = raise_until_refused(&client).await;
    println!("{taken} events were taken, then: {error}");
    let ClientError::Provider(error) = error else { panic!("{error:?}") };
    assert!(error.is_retryable() && error.message.contains("53100"), "{error:?}");
    disk.empty();
    check(&schema, &client, nodes).await;
    // The receiver may have ended before some of them.
    let recorded = recorded(&client, taken + 1).await;
    assert!(recorded.iter().all(|times| *times <= 1), "{recorded:?}");
    assert_eq!(recorded.last(), Some(&0), "what was refused has happened");
}

/// Ends the connections of the nodes and takes all that the server has.
async fn take_all_connections(schema: &Schema) -> Vec<tokio_postgres::Client> {
    let admin = schema.admin().await;
    let mut taken = Vec::new();
    loop {
        let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = $1";
        admin.query(end, &[&schema.name()]).await.unwrap();
        while let Some(client) = schema.try_admin().await {
            taken.push(client);
        }
        let left = "SELECT 1 FROM pg_stat_activity WHERE application_name = $1";
        if admin.query(left, &[&schema.name()]).await.unwrap().is_empty() {
            taken.push(admin);
            return taken;
        }
    }
}

/// S4.20: nodes that have lost their connections, and cannot reconnect, go on when connections are free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_free_connection_loses_nothing() {
    let Some(server) = Server::own() else { return };
    server.configure("max_connections = 16\nsuperuser_reserved_connections = 0");
    tokio::task::block_in_place(|| server.restart_immediately());
    let schema = Schema::on(&server, &server.tcp_url());
    let client = Client::new(schema.open_named("client").await);
    let nodes = Nodes::start(&schema).await;
    let taken = take_all_connections(&schema).await;
    // The client has kept its connections.
    mix::start(&client, COPIES).await;
    let refused = PostgresProvider::open(options_in(schema.folder())).await.unwrap_err();
    assert!(matches!(refused, OpenError::TooManyConnections { .. }), "{refused:?}");
    assert_eq!(schema.notes().lines().len(), 0, "a node works without a connection");
    drop(taken);
    check(&schema, &client, nodes).await;
}
