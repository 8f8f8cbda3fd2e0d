//! Schemas of every earlier version are upgraded in place, with running instances inside.
//!
//! Before a migration is added, the file of the version that it ends is written: see `writes_the_file_of_this_schema`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "this is a test"
)]

mod at_once;
mod file;
#[path = "../fixture/mod.rs"]
mod fixture;
mod story;

use std::{
    collections::BTreeSet,
    fs,
    process::Command,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use duroxide_postgres::{Intake, PostgresProvider};
use duroxide_provider::{Provider, invariant, store::StoreSnapshot};
use duroxide_runtime::{Client, Runtime};
use file::{FILES, SCHEMA, load};
use fixture::{fresh_options, sql::Admin};
use postgres_server::Server;

/// The environment variable of the process that leaves instances behind.
const LEAVES: &str = "DUROXIDE_TEST_LEAVES_INSTANCES";
/// More than a busy machine needs for all instances of a file.
const IN_TIME: Duration = Duration::from_secs(60);

fn assert_sound(snapshot: &StoreSnapshot) {
    let violations = invariant::check(snapshot);
    assert!(violations.is_empty(), "{violations:#?}");
}

async fn version(server: &Server, schema: &str) -> i64 {
    let admin = Admin::connect(server).await;
    let sql = format!("SELECT schema_version FROM {schema}.meta");
    admin.client().query_one(&sql, &[]).await.unwrap().get(0)
}

/// A new migration makes an earlier schema of the one before it, whose file has to be among those that are opened here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_schema_but_the_current_one_has_a_file() {
    let migrations = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations")).unwrap().count();
    assert_eq!(FILES.len() + 1, migrations, "write the file of the version before the last migration");
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    drop(PostgresProvider::open(options.clone()).await.unwrap());
    assert_eq!(version(server, options.schema.as_str()).await as usize, migrations);
    for number in 1..=FILES.len() {
        let options = load(server, number).await;
        assert_eq!(version(server, options.schema.as_str()).await as usize, number);
    }
}

/// Tables with their columns, indexes, constraints and sequences.
async fn parts(server: &Server, schema: &str) -> BTreeSet<String> {
    let sql = format!(
        "SELECT format('%s.%s %s %s %s %s', table_name, column_name, data_type, collation_name, is_nullable,
                coalesce(generation_expression, column_default, identity_generation))
            FROM information_schema.columns WHERE table_schema = '{schema}'
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = '{schema}'
        UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
            WHERE connamespace = '{schema}'::regnamespace
        UNION ALL SELECT format('%s %s %s %s', sequencename, start_value, min_value, increment_by) FROM pg_sequences
            WHERE schemaname = '{schema}'
        UNION ALL SELECT relname || ' ' || array_to_string(reloptions, ' ') FROM pg_class
            WHERE relnamespace = '{schema}'::regnamespace"
    );
    let rows = Admin::connect(server).await.client().query(&sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, Option<String>>(0).unwrap_or_default().replace(schema, "s")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgraded_schema_has_the_parts_of_a_new_one() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    drop(PostgresProvider::open(options.clone()).await.unwrap());
    let new = parts(server, options.schema.as_str()).await;
    for number in 1..=FILES.len() {
        let options = load(server, number).await;
        drop(PostgresProvider::open(options.clone()).await.unwrap());
        assert_eq!(parts(server, options.schema.as_str()).await, new, "of version {number}");
    }
}

/// Opens the schema of a file and runs its instances to their end.
async fn go_on(version: usize) {
    let Some(server) = postgres_server::server() else { return };
    let options = load(server, version).await;
    let provider = Arc::new(PostgresProvider::open(options).await.unwrap());
    let found = provider.snapshot().await.unwrap();
    assert_sound(&found);
    assert_left_as_they_were(&found);
    let store: Arc<dyn Provider> = provider.clone();
    let client = Client::new(Arc::clone(&store));
    for (key, value) in [("kept", Some("one")), ("cleared", None), ("changed", Some("two"))] {
        assert_eq!(client.get_kv_value("values", key).await.unwrap().as_deref(), value, "{key}");
    }
    let (activities, orchestrations) = (story::activities_after(), story::orchestrations_after());
    let runtime =
        Runtime::start_with_options(Arc::clone(&store), activities, orchestrations, story::options_after())
            .await;
    let finish = story::finish(&*store, &client);
    tokio::time::timeout(IN_TIME, finish).await.expect("all instances end");
    if version > 1 {
        story::raise(&*store, &client, "from-intake", "go").await;
        story::assert_output(&client, "from-intake", "after").await;
        assert!(story::has_received(&*store, "from-intake", "of the intake").await);
    }
    runtime.shutdown(None).await;
    let ended = provider.snapshot().await.unwrap();
    assert_sound(&ended);
    assert!(ended.dead_letters.is_empty(), "{:?}", ended.dead_letters);
    for instance in &ended.instances {
        let name = &instance.instance;
        assert!(instance.messages.is_empty() && instance.activities.is_empty(), "{name}: {instance:?}");
        assert!(instance.lock.is_none(), "{name}: {:?}", instance.lock);
    }
}

/// The leases of the dead node are in force.
fn assert_left_as_they_were(snapshot: &StoreSnapshot) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let lasts = |until: duroxide_core::Timestamp| u128::from(until.as_micros()) > now.as_micros();
    let instance = |id: &str| snapshot.instances.iter().find(|row| row.instance == id).unwrap();
    let turn = instance("turn-held");
    assert!(lasts(turn.lock.as_ref().unwrap().until), "{turn:?}");
    let held: Vec<bool> = turn.messages.iter().map(|message| message.locked).collect();
    assert_eq!(held, [true, false], "{turn:?}");
    for id in ["activity-held", "activity-in-session"] {
        let activity = &instance(id).activities[0];
        assert!(lasts(activity.lock.as_ref().unwrap().until), "{activity:?}");
        assert_eq!(activity.attempt_count, 1);
    }
    assert_eq!(snapshot.dead_letters.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_of_version_1_go_on() {
    go_on(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_of_version_2_go_on() {
    go_on(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_of_version_3_go_on() {
    go_on(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_of_version_4_go_on() {
    go_on(4).await;
}

/// Not a test: leaves running instances in the schema of the files, and dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
#[ignore = "a child process of writes_the_file_of_this_schema begins here"]
async fn leaves_running_instances() {
    if std::env::var_os(LEAVES).is_none() {
        return;
    }
    let Some(server) = postgres_server::server() else { return };
    let provider = PostgresProvider::open(file::options_of_files(server)).await.unwrap();
    let store: Arc<dyn Provider> = Arc::new(provider);
    let client = Client::new(Arc::clone(&store));
    story::HOLDS_TURN.store(true, Ordering::Relaxed);
    let (activities, orchestrations) = (story::activities_before(), story::orchestrations_before());
    let options = story::options_before();
    let _runtime = Runtime::start_with_options(Arc::clone(&store), activities, orchestrations, options).await;
    let admin = Admin::connect(server).await;
    let held = format!(
        "SELECT (SELECT count(*) FROM {SCHEMA}.activity WHERE lock_token IS NOT NULL)
            + (SELECT count(*) FROM {SCHEMA}.instance WHERE lock_token IS NOT NULL)"
    );
    let is_held = async || admin.client().query_one(&held, &[]).await.unwrap().get::<_, i64>(0) == 3;
    story::leave(&*store, &client, is_held).await;
    std::process::abort();
}

/// Not a test: writes the file of the current version. Run it before a migration is added, with
/// `cargo test -p duroxide-postgres --test upgrades -- --ignored --exact writes_the_file_of_this_schema`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "writes a file for the next migration"]
async fn writes_the_file_of_this_schema() {
    let Some(server) = postgres_server::server() else { return };
    let mut child = Command::new(std::env::current_exe().unwrap());
    let (name, value) = server.address().variable();
    let status = child
        .args(["--ignored", "--exact", "leaves_running_instances"])
        .env(name, value)
        .env(LEAVES, "1")
        .status();
    assert!(!status.unwrap().success(), "it dies");
    // Nobody takes these over any more.
    let mut options = fresh_options(server);
    options.config.application_name("caller");
    let (mut caller, connection) = options.config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let intake = Intake::new(&file::options_of_files(server).schema);
    let transaction = caller.transaction().await.unwrap();
    intake.start_orchestration(&transaction, "from-intake", "Event", "").await.unwrap();
    intake.raise_event(&transaction, "from-intake", "go", "of the intake").await.unwrap();
    transaction.commit().await.unwrap();
    let commit = Command::new("git").args(["rev-parse", "--short=8", "HEAD"]).output().unwrap().stdout;
    let commit = String::from_utf8(commit).unwrap();
    file::dump(server, version(server, SCHEMA).await as usize, commit.trim());
}
