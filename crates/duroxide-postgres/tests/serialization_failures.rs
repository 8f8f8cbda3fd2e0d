//! 24.4: a transaction that the database ends with a serialization failure (SQLSTATE 40001) is repeated as a whole.
//!
//! Triggers raise the error, at the write of a row or at the commit. They count their calls with a sequence, which a rollback
//! does not set back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

mod fixture;

use std::{fmt::Write as _, time::Duration};

use duroxide_postgres::{PostgresOptions, PostgresProvider};
use duroxide_provider::{
    OrchestrationClaim, OrchestrationFetch, Provider, ProviderError, TagFilter, WorkFetch, invariant,
    testing::{Turn, items},
};
use fixture::{fresh_options, sql::Admin};
use futures_util::{FutureExt as _, future::join_all};
use postgres_server::Server;

/// Longer than a test takes.
const LEASE: Duration = Duration::from_secs(300);
/// How often a batch is tried again (24.4).
const TRIES_AGAIN: i64 = 16;
/// Starts and events of the batch, besides its round.
const OTHERS: usize = 4;
/// The events that the round appends.
const EVENTS: i64 = 3;

/// When the error is raised.
#[derive(Debug, Clone, Copy)]
enum At {
    Write,
    Commit,
}

/// A store, and an operator who adds triggers to its tables.
struct Store {
    provider: PostgresProvider,
    admin: Admin,
    watcher: Admin,
    schema: String,
}

impl Store {
    async fn open(server: &Server) -> Self {
        let options: PostgresOptions = fresh_options(server);
        let schema = options.schema.to_string();
        let provider = PostgresProvider::open(options).await.unwrap();
        Self { provider, admin: Admin::connect(server).await, watcher: Admin::connect(server).await, schema }
    }

    /// From now on the first `times` rows that are inserted into or changed in these tables fail.
    async fn fail(&self, at: At, tables: &[&str], times: i64) {
        let schema = &self.schema;
        let mut sql = format!(
            "DROP SEQUENCE IF EXISTS {schema}.calls; CREATE SEQUENCE {schema}.calls;
            CREATE OR REPLACE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('{schema}.calls') <= {times} THEN
                    RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
                END IF;
                RETURN NEW;
            END $$;"
        );
        for table in tables {
            let trigger = match at {
                At::Write => format!("CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON {schema}.{table}"),
                At::Commit => format!(
                    "CREATE CONSTRAINT TRIGGER fails AFTER INSERT OR UPDATE ON {schema}.{table}
                    DEFERRABLE INITIALLY DEFERRED"
                ),
            };
            write!(sql, "{trigger} FOR EACH ROW EXECUTE FUNCTION {schema}.fail();").unwrap();
        }
        self.admin.run(&sql).await;
    }

    async fn stop_failing(&self, table: &str) {
        self.admin.run(&format!("DROP TRIGGER fails ON {}.{table}", self.schema)).await;
    }

    /// How often the triggers were called.
    async fn calls(&self) -> i64 {
        self.number(&format!("SELECT last_value FROM {}.calls WHERE is_called", self.schema)).await
    }

    async fn number(&self, sql: &str) -> i64 {
        self.admin.client().query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn claim(&self) -> OrchestrationClaim {
        let fetch = OrchestrationFetch::new(LEASE, LEASE);
        let mut claims = self.provider.fetch_orchestration_items(&fetch).await.unwrap();
        assert_eq!(claims.len(), 1, "{claims:?}");
        claims.remove(0)
    }

    /// The instances `worker`, which is claimed, and `other` and `blocked`, which wait for events.
    async fn with_claim(&self) -> OrchestrationClaim {
        for id in ["other", "blocked"] {
            self.provider.enqueue_for_orchestrator(items::start(id), None).await.unwrap();
            let claim = self.claim().await;
            self.provider.commit_round(&claim.lock_token, Turn::first(id).round()).await.unwrap();
        }
        self.provider.enqueue_for_orchestrator(items::start("worker"), None).await.unwrap();
        self.claim().await
    }

    /// Commits a round, starts instances and raises events, all in one transaction: the store collects them while it waits for a
    /// row that the operator has locked.
    async fn commit_one_batch(&self, claim: &OrchestrationClaim) -> Vec<Result<(), ProviderError>> {
        let Self { provider, admin, watcher, schema } = self;
        let lock = format!("BEGIN; SELECT 1 FROM {schema}.instance WHERE id = 'blocked' FOR UPDATE");
        admin.run(&lock).await;
        let blocker: i32 = admin.client().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let mut first = provider.enqueue_for_orchestrator(items::raise("blocked", "go"), None);
        let waits = "SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        while watcher.client().query(waits, &[&blocker]).await.unwrap().is_empty() {
            assert!((&mut first).now_or_never().is_none(), "the row is locked");
            tokio::task::yield_now().await;
        }
        let turn = Turn::first("worker").activity().set("key", "value").send(items::raise("other", "round"));
        let mut calls = vec![provider.commit_round(&claim.lock_token, turn.round())];
        for n in 0..OTHERS {
            let item =
                if n % 2 == 0 { items::start(&format!("new-{n}")) } else { items::raise("other", "go") };
            calls.push(provider.enqueue_for_orchestrator(item, None));
        }
        // Each call is submitted when it is polled for the first time.
        let mut calls = Box::pin(join_all(calls));
        assert!((&mut calls).now_or_never().is_none(), "the store is busy");
        admin.run("COMMIT").await;
        first.await.unwrap();
        calls.await
    }

    /// Everything of the batch is there, once.
    async fn assert_recorded_once(&self) {
        let snapshot = self.provider.snapshot().await.unwrap();
        let instance = |id: &str| snapshot.instances.iter().find(|row| row.instance == id).unwrap();
        let worker = instance("worker");
        assert_eq!(worker.executions[0].events.len() as i64, EVENTS);
        assert_eq!((worker.messages.len(), worker.activities.len()), (0, 1));
        assert!(worker.lock.is_none(), "{worker:?}");
        assert_eq!(self.provider.get_kv_value("worker", "key").await.unwrap().as_deref(), Some("value"));
        assert_eq!(instance("other").messages.len(), 1 + OTHERS / 2);
        for n in (0..OTHERS).step_by(2) {
            assert_eq!(instance(&format!("new-{n}")).messages.len(), 1);
        }
        let violations = invariant::check(&snapshot);
        assert!(violations.is_empty(), "{violations:#?}");
    }

    /// One transaction has written all rows of the batch: the new events, instances and messages.
    async fn assert_one_transaction(&self) {
        let schema = &self.schema;
        let sql = format!(
            "WITH batch AS (SELECT history.xmin FROM {schema}.history JOIN {schema}.instance ON number = instance
                    WHERE id = 'worker'
                UNION ALL SELECT message.xmin FROM {schema}.message JOIN {schema}.instance ON instance.number = instance
                    WHERE id <> 'blocked'
                UNION ALL SELECT activity.xmin FROM {schema}.activity)
            SELECT count(DISTINCT xmin::text) FROM batch"
        );
        assert_eq!(self.number(&sql).await, 1, "the calls were not one batch");
    }
}

/// Callers do not notice, and nothing happens twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_cannot_be_serialized_is_repeated_as_a_whole() {
    let Some(server) = postgres_server::server() else { return };
    for (at, failures) in
        [(At::Write, 1), (At::Write, TRIES_AGAIN), (At::Commit, 1), (At::Commit, TRIES_AGAIN)]
    {
        let store = Store::open(server).await;
        let claim = store.with_claim().await;
        store.fail(at, &["history"], failures).await;
        for answer in store.commit_one_batch(&claim).await {
            answer.unwrap();
        }
        // The first event of each try failed, and then all events were written.
        assert_eq!(store.calls().await, failures + EVENTS, "{at:?}");
        store.assert_recorded_once().await;
        store.assert_one_transaction().await;
    }
}

/// The callers get a retryable error after a bounded number of tries, nothing has happened, and the same calls succeed later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_can_never_be_serialized_fails_and_may_be_repeated() {
    let Some(server) = postgres_server::server() else { return };
    for at in [At::Write, At::Commit] {
        let store = Store::open(server).await;
        let claim = store.with_claim().await;
        let before = store.provider.snapshot().await.unwrap();
        store.fail(at, &["history"], i64::MAX).await;
        for answer in store.commit_one_batch(&claim).await {
            let error = answer.unwrap_err();
            assert!(error.is_retryable() && error.message.contains("40001"), "{at:?}: {error}");
        }
        // The first try is on cached rows. It is followed by one on rows from the database, and then by the others.
        assert_eq!(store.calls().await, 2 + TRIES_AGAIN, "{at:?}");

        let mut after = store.provider.snapshot().await.unwrap();
        let blocked = after.instances.iter_mut().find(|row| row.instance == "blocked").unwrap();
        assert_eq!(blocked.messages.len(), 1, "the event in front of the batch");
        *blocked = before.instances.iter().find(|row| row.instance == "blocked").unwrap().clone();
        assert_eq!(after.instances, before.instances, "{at:?}");

        store.stop_failing("history").await;
        for answer in store.commit_one_batch(&claim).await {
            answer.unwrap();
        }
        store.assert_recorded_once().await;
    }
}

/// Claims count one attempt, however often their transaction was repeated. An acknowledgement is recorded once, and so is an event
/// that one statement stores for an instance that waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_acknowledgements_and_single_events_are_repeated_too() {
    let Some(server) = postgres_server::server() else { return };
    for at in [At::Write, At::Commit] {
        let store = Store::open(server).await;
        let provider = &store.provider;
        let claim = store.with_claim().await;
        provider.commit_round(&claim.lock_token, Turn::first("worker").activity().round()).await.unwrap();

        store.fail(at, &["activity"], 3).await;
        let fetch = WorkFetch::new(LEASE, LEASE, &TagFilter::DefaultOnly);
        let work = provider.fetch_work_items(&fetch).await.unwrap().remove(0);
        assert_eq!(work.attempt_count, 1, "{at:?}");
        assert_eq!(store.calls().await, 3 + 1, "{at:?}");
        store.stop_failing("activity").await;

        store.fail(at, &["message"], 3).await;
        let result = Some(items::completed("worker", 2));
        provider.ack_work_item(&work.lock_token, result).await.unwrap();
        assert_eq!(store.calls().await, 3 + 1, "{at:?}");
        store.stop_failing("message").await;

        store.fail(at, &["message"], 3).await;
        provider.enqueue_for_orchestrator(items::raise("other", "go"), None).await.unwrap();
        assert_eq!(store.calls().await, 3 + 1, "{at:?}");
        store.stop_failing("message").await;

        store.fail(at, &["instance"], 3).await;
        for (id, messages) in [("worker", 1), ("other", 1)] {
            let claim = store.claim().await;
            assert_eq!((claim.instance.as_str(), claim.messages.len()), (id, messages), "{at:?}");
            assert_eq!(claim.attempt_count, 1, "{at:?}");
        }
        let violations = invariant::check(&provider.snapshot().await.unwrap());
        assert!(violations.is_empty(), "{at:?}: {violations:#?}");
    }
}
