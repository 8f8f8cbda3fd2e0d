//! Rows that callers write into the intake in transactions of their own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this is a test, and helpers of tests are tests"
)]

mod fixture;

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::{Timestamp, WorkItem};
use duroxide_postgres::{Intake, IntakeError, PostgresOptions, PostgresProvider};
use duroxide_provider::{
    OrchestrationFetch, Provider,
    store::{INTAKE_ROWS_MAX, NextWake, StoreEngine, StoreReader},
    testing::Turn,
};
use fixture::{Node, fresh_options, send, sql::Admin, start};
use postgres_server::Server;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// A caller with a connection of its own, which is no store.
struct Caller {
    runtime: Runtime,
    client: Client,
    intake: Intake,
    schema: String,
}

impl Caller {
    fn connect(server: &Server, options: &PostgresOptions) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&server.socket_url(), NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        let caller = Self {
            runtime,
            client,
            intake: Intake::new(&options.schema),
            schema: options.schema.to_string(),
        };
        caller.run("CREATE TABLE {s}.orders (id text PRIMARY KEY)");
        caller
    }

    fn run(&self, sql: &str) {
        self.try_run(sql).unwrap();
    }

    fn try_run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.runtime.block_on(self.client.batch_execute(&sql.replace("{s}", &self.schema)))
    }

    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {}.{table}", self.schema);
        self.runtime.block_on(self.client.query_one(&sql, &[])).unwrap().get(0)
    }

    fn start(&self, instance: &str, input: &str) {
        let started = self.intake.start_orchestration(&self.client, instance, "hello", input);
        self.runtime.block_on(started).unwrap();
    }

    fn enqueue(&self, instance: &str, data: &str) {
        self.runtime.block_on(self.intake.enqueue_event(&self.client, instance, "q", data)).unwrap();
    }

    /// An order with its workflow and two messages, in one transaction.
    fn order(&mut self, id: &str, commit: bool) {
        let Self { runtime, client, intake, schema } = self;
        runtime.block_on(async {
            let transaction = client.transaction().await.unwrap();
            transaction.execute(&format!("INSERT INTO {schema}.orders VALUES ($1)"), &[&id]).await.unwrap();
            intake.start_orchestration(&transaction, id, "hello", "{}").await.unwrap();
            intake.enqueue_event(&transaction, id, "q", "1").await.unwrap();
            intake.raise_event(&transaction, id, "signal", "2").await.unwrap();
            if commit { transaction.commit().await.unwrap() } else { transaction.rollback().await.unwrap() }
        });
    }
}

/// Repeats the steps of a store's thread after a notification. Returns the time of its next poll.
fn take_over(node: &mut Node) -> Option<Timestamp> {
    node.engine.reopen().unwrap();
    let batch = node.batch(Vec::new(), 0, 0);
    match node.transact(&batch).0.next_wake {
        NextWake::Known(time) => time,
        NextWake::Unknown => panic!("the transaction did not tell"),
    }
}

fn data(message: &WorkItem) -> &str {
    match message {
        WorkItem::ExternalRaised { data, .. } | WorkItem::QueueMessage { data, .. } => data,
        _ => "start",
    }
}

/// 24.14
#[test]
fn an_order_and_its_workflow_commit_together_or_not_at_all() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    let mut caller = Caller::connect(server, &options);
    caller.order("rolled-back", false);
    caller.order("order-1", true);
    take_over(&mut node);
    assert_eq!((caller.count("orders"), caller.count("intake")), (1, 0));
    let (claims, _) = node.claim(10);
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].instance, "order-1");
    assert_eq!(claims[0].messages.iter().map(data).collect::<Vec<_>>(), ["start", "1", "2"]);
    assert!(node.engine.status("rolled-back").unwrap().is_none());
    caller.start("order-1", "again");
    take_over(&mut node);
    assert_eq!((caller.count("message"), caller.count("intake")), (3, 0), "it exists");
}

/// The transaction that the guide shows for other clients, on this schema.
fn transaction_of_guide(schema: &str) -> String {
    let guide = include_str!("../../../docs/in-your-transaction.md");
    let block = guide.split("```sql").find(|block| block.contains("pg_notify"));
    let block = block.and_then(|block| block.split("```").next()).unwrap();
    block.replace("workflows", schema).replace("INTO orders", &format!("INTO {schema}.orders"))
}

/// Starts, events and messages for queues. A waiting fetch gets each of them long before the next poll.
#[tokio::test]
async fn plain_sql_will_do() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let schema = options.schema.to_string();
    let provider = PostgresProvider::open(options).await.unwrap();
    let admin = Admin::connect(server).await;
    admin.run(&format!("CREATE TABLE {schema}.orders (id text, item text)")).await;
    let shown = transaction_of_guide(&schema);
    let (lease, wait) = (Duration::from_secs(60), Duration::from_secs(20));
    for kind in ["start", "raise", "enqueue"] {
        let request = OrchestrationFetch::new(lease, wait);
        let handed_in = shown.replace("'start'", &format!("'{kind}'"));
        let (claims, ()) = tokio::join!(provider.fetch_orchestration_items(&request), async {
            tokio::task::yield_now().await;
            admin.run(&handed_in).await;
        });
        let claims = claims.unwrap();
        let claim = claims.first().expect("the commit was noticed");
        assert_eq!(claim.instance, "order-1");
        let is_kind = match claim.messages.as_slice() {
            [WorkItem::StartOrchestration { orchestration, input, .. }] => {
                kind == "start" && orchestration == "Order" && input == "\"teapot\""
            }
            [WorkItem::ExternalRaised { name, .. }] => kind == "raise" && name == "Order",
            [WorkItem::QueueMessage { name, .. }] => kind == "enqueue" && name == "Order",
            _ => false,
        };
        assert!(is_kind, "{kind}: {:?}", claim.messages);
        let turn = if kind == "start" { Turn::first("order-1") } else { Turn::later(claim) };
        provider.commit_round(&claim.lock_token, turn.round()).await.unwrap();
    }
    let orders = admin.client().query(&format!("SELECT 1 FROM {schema}.orders"), &[]).await.unwrap();
    assert_eq!(orders.len(), 3);
}

/// A role without other privileges writes the row.
#[test]
fn a_caller_needs_no_more_than_to_insert() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    let caller = Caller::connect(server, &options);
    caller.run(
        "CREATE ROLE {s}_shop;
        GRANT USAGE ON SCHEMA {s} TO {s}_shop;
        GRANT INSERT ON {s}.intake TO {s}_shop;
        SET ROLE {s}_shop",
    );
    caller.start("order-1", "{}");
    caller.try_run("SELECT * FROM {s}.intake").unwrap_err();
    take_over(&mut node);
    assert_eq!(node.claim(1).0[0].instance, "order-1");
    caller.run("RESET ROLE; DROP OWNED BY {s}_shop; DROP ROLE {s}_shop");
}

/// 24.15
#[test]
fn an_invalid_row_or_one_whose_transaction_fails_does_not_block_the_next() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    let caller = Caller::connect(server, &options);
    let reserved = caller.intake.start_orchestration(&caller.client, "a::sub::1", "hello", "{}");
    assert!(matches!(caller.runtime.block_on(reserved), Err(IntakeError::Invalid(_))));
    let by_hand = "INSERT INTO {s}.intake (kind, instance_id, name, version, data) VALUES";
    caller.try_run(&format!("{by_hand} ('cancel', 'a', 'b', NULL, '')")).unwrap_err();
    caller.try_run(&format!("{by_hand} ('start', repeat('a', 2049), 'b', NULL, '')")).unwrap_err();
    caller.run(
        "CREATE FUNCTION {s}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.data LIKE '%poison%' THEN RAISE EXCEPTION 'this row cannot be stored'; END IF;
            RETURN NEW; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON {s}.message FOR EACH ROW EXECUTE FUNCTION {s}.refuse()",
    );
    caller.start("first", "{}");
    caller.run(&format!("{by_hand} ('start', 'senseless', 'b', 'latest', '')"));
    caller.start("second", "poison");
    caller.start("third", "{}");
    while caller.count("intake") > 0 {
        take_over(&mut node);
    }
    let claimed: Vec<String> = node.claim(10).0.into_iter().map(|claim| claim.instance).collect();
    assert_eq!(claimed, ["first", "third"]);
    let letters = node.engine.dead_letters(None).unwrap();
    assert_eq!(letters.len(), 2);
    assert!(letters[0].reason.contains("'latest' is not a semantic version"), "{letters:?}");
    assert!(letters[1].reason.contains("this row cannot be stored"), "{letters:?}");
}

/// 24.14: one node takes rows over at a time. The others do not wait for it, even if it is suspended, and poll again soon.
#[test]
fn a_node_does_not_wait_for_another_one_that_takes_rows_over() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    let (caller, frozen) = (Caller::connect(server, &options), Node::open(&options, 2));
    drop(frozen);
    caller.start("order-1", "{}");
    let holder = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let admin = holder.block_on(Admin::connect(server));
    let lock =
        format!("SELECT pg_advisory_xact_lock(hashtextextended('duroxide intake {}', 0))", options.schema);
    holder.block_on(admin.run(&format!("BEGIN; {lock}")));
    let again = take_over(&mut node).unwrap();
    assert!(again > node.clock && again <= node.clock.saturating_add(Duration::from_millis(100)));
    node.run(vec![start("order-2")]);
    assert_eq!(node.claim(10).0.into_iter().map(|claim| claim.instance).collect::<Vec<_>>(), ["order-2"]);
    holder.block_on(admin.run("ROLLBACK"));
    node.run(vec![send(WorkItem::CancelInstance { instance: "order-2".into(), reason: "done".into() })]);
    assert_eq!(node.claim(10).0.into_iter().map(|claim| claim.instance).collect::<Vec<_>>(), ["order-1"]);
}

/// 24.14, I15: nodes that take over at the same time keep the order of each caller, and take every row once.
#[test]
fn nodes_that_take_over_at_once_keep_the_order() {
    const CALLERS: usize = 3;
    const EACH: usize = 60;
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut first = Node::open(&options, 1);
    let setup = Caller::connect(server, &options);
    for caller in 0..CALLERS {
        setup.start(&format!("order-{caller}"), "{}");
    }
    take_over(&mut first);
    std::thread::scope(|threads| {
        for caller in 0..CALLERS {
            let options = &options;
            threads.spawn(move || {
                let caller_options = fresh_options(server);
                drop(Node::open(&caller_options, 90 + caller as u128));
                let mut sender = Caller::connect(server, &caller_options);
                sender.intake = Intake::new(&options.schema);
                (0..EACH).for_each(|n| sender.enqueue(&format!("order-{caller}"), &n.to_string()));
            });
        }
        for number in 2..5 {
            let (options, setup) = (&options, &setup);
            threads.spawn(move || {
                let mut node = Node::open(options, number);
                let all = i64::try_from(CALLERS * (EACH + 1)).unwrap();
                while stored_messages(server, &setup.schema) < all {
                    let batch = node.batch(Vec::new(), 0, 0);
                    node.engine.reopen().unwrap();
                    // A lost race is tried again.
                    let _ = node.engine.transact(&batch);
                }
            });
        }
    });
    let mut sent: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for claim in first.claim(10).0 {
        let numbers = claim.messages.iter().map(data).filter(|data| *data != "start");
        sent.insert(claim.instance.clone(), numbers.map(|number| number.parse().unwrap()).collect());
    }
    assert_eq!(sent.len(), CALLERS);
    for (instance, numbers) in sent {
        assert_eq!(numbers, (0..EACH).collect::<Vec<_>>(), "{instance}");
    }
}

fn stored_messages(server: &Server, schema: &str) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let admin = Admin::connect(server).await;
        let sql = format!("SELECT count(*) FROM {schema}.message");
        admin.client().query_one(&sql, &[]).await.unwrap().get(0)
    })
}

#[test]
fn many_rows_are_taken_over_in_bounded_transactions() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    let caller = Caller::connect(server, &options);
    caller.run(
        "INSERT INTO {s}.intake (kind, instance_id, name, data)
        SELECT 'start', 'order-' || n, 'hello', '{}' FROM generate_series(1, 300) AS n",
    );
    assert_eq!(take_over(&mut node), Some(node.clock), "there is more");
    let max = i64::try_from(INTAKE_ROWS_MAX).unwrap();
    assert_eq!(caller.count("intake"), 300 - max);
    // Large rows are fewer: the first of these exceeds the bytes of a transaction.
    caller.run(
        "INSERT INTO {s}.intake (kind, instance_id, name, data)
        SELECT 'enqueue', 'large', 'q', repeat('x', 9000000) FROM generate_series(1, 2)",
    );
    assert_eq!(take_over(&mut node), Some(node.clock));
    assert_eq!(caller.count("intake"), 1);
    take_over(&mut node);
    assert_eq!(caller.count("intake"), 0);
}

/// 24.14: a waiting fetch is notified of the commit. Without the notification it would wait for the poll after 30 seconds.
#[tokio::test]
async fn a_waiting_fetch_notices_the_commit() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let provider = PostgresProvider::open(options.clone()).await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&server.socket_url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let (lease, wait) = (Duration::from_secs(60), Duration::from_secs(20));
    for number in 0..3 {
        let transaction = client.transaction().await.unwrap();
        let instance = format!("order-{number}");
        let intake = Intake::new(&options.schema);
        intake.start_orchestration(&transaction, &instance, "hello", "{}").await.unwrap();
        let fetch = provider.fetch_orchestration_item(lease, wait, None);
        let (fetched, ()) = tokio::join!(fetch, async {
            // The fetch waits by now, or comes later; either way it is the commit that it finds.
            tokio::task::yield_now().await;
            transaction.commit().await.unwrap();
        });
        let (item, _, _) = fetched.unwrap().expect("the commit was noticed");
        assert_eq!(item.instance, instance);
    }
}

/// A schema of the first version is brought to the current one, by one of ten nodes that open it at once.
#[tokio::test]
async fn a_schema_of_the_first_version_is_upgraded_once() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let schema = options.schema.to_string();
    let admin = Admin::connect(server).await;
    let tables = include_str!("../migrations/0001_tables.sql").replace("{s}", &schema);
    admin.run(&format!("CREATE SCHEMA {schema}; {tables}")).await;
    let nodes = (0..10).map(|_| PostgresProvider::open(options.clone()));
    for node in futures_util::future::join_all(nodes).await {
        node.unwrap();
    }
    assert!(admin.tables(&schema).await.contains(&"intake".to_owned()));
    let version = admin.client().query_one(&format!("SELECT schema_version FROM {schema}.meta"), &[]).await;
    assert_eq!(version.unwrap().get::<_, i64>(0), 5);
}
