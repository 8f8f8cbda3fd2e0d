//! Stores with very many instances, made in seconds: a few that really ran, and copies of their rows.

use std::{path::Path, sync::Arc, time::Duration};

use duroxide::{Client, OrchestrationStatus, providers::sqlite::SqliteProvider, runtime::Runtime};
use rusqlite::{Connection, named_params};

use crate::shop;

/// Longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The copies are spread over this time, more and more of them towards its end.
const SPREAD: Duration = Duration::from_secs(26 * 3_600);

/// Opens the store of a file, makes it if it is missing.
pub async fn open(path: &Path) -> Arc<SqliteProvider> {
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await;
    Arc::new(store.expect("the store opens"))
}

/// Fills a new store with about `count` instances: 88 % completed, 6 % failed, 6 % waiting for an event.
pub async fn fill(path: &Path, count: u32) {
    let store = open(path).await;
    let runtime = Runtime::start_with_store(store.clone(), shop::activities(), shop::orchestrations()).await;
    let client = Client::new(store.clone());
    for (id, name) in [("hello-seed", "Hello"), ("payment-seed", "Payment"), ("order-seed", "Order")] {
        client.start_orchestration(id, name, "4711").await.expect("starts");
    }
    for id in ["hello-seed", "payment-seed"] {
        client.wait_for_orchestration(id, TIMEOUT).await.expect("ends");
    }
    let waiting = client.wait_for_status_change("order-seed", 0, Duration::from_millis(10), TIMEOUT).await;
    assert!(matches!(waiting, Ok(OrchestrationStatus::Running { .. })), "{waiting:?}");
    runtime.shutdown(None).await;
    drop((client, store));
    copy_rows(
        path,
        &[
            ("hello-seed", count / 100 * 88),
            ("payment-seed", count / 100 * 6),
            ("order-seed", count / 100 * 6),
        ],
    );
}

/// Copies the rows of each instance this often, under ids such as `hello-0000042`.
fn copy_rows(path: &Path, seeds: &[(&str, u32)]) {
    let mut connection = Connection::open(path).expect("the file opens");
    let transaction = connection.transaction().expect("nobody else writes");
    for (seed, copies) in seeds {
        let prefix = seed.trim_end_matches("seed");
        let step = i64::try_from(SPREAD.as_micros()).unwrap_or(0) / i64::from(*copies.max(&1));
        let base: i64 =
            transaction.query_row("SELECT max(id) FROM instance", [], |row| row.get(0)).expect("a row");
        for statement in [COPY_INSTANCE, COPY_EXECUTION, COPY_HISTORY] {
            let mut prepared = transaction.prepare(statement).expect("the tables are as they were");
            let all = named_params! {":seed": seed, ":prefix": prefix, ":copies": copies, ":step": step, ":base": base};
            let used: Vec<_> = all.iter().filter(|(name, _)| statement.contains(*name)).copied().collect();
            prepared.execute(used.as_slice()).expect("rows are copied");
        }
    }
    let numbers = "UPDATE sequence SET next = max(next, (SELECT max(id) + 1 FROM instance))";
    transaction.execute(numbers, []).expect("numbers go on behind the copies");
    transaction.commit().expect("rows are committed");
    connection.execute_batch("ANALYZE").expect("statistics");
}

const COPY_INSTANCE: &str = "
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :copies)
    INSERT INTO instance (id, instance_id, known, name, version, status, execution_id, created_at, updated_at, route)
    SELECT :base + i, :prefix || printf('%07d', i), known, name, version, status, execution_id,
           created_at - ((:copies - i) + (:copies - i) * (:copies - i) / :copies) * :step / 2, updated_at - ((:copies - i) + (:copies - i) * (:copies - i) / :copies) * :step / 2, route
    FROM n, instance WHERE instance_id = :seed";

const COPY_EXECUTION: &str = "
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :copies)
    INSERT INTO execution (instance, execution_id, status, output, major, minor, patch, last_event_id, turns, started_at,
                           completed_at, output_event)
    SELECT :base + i, e.execution_id, e.status, e.output, major, minor, patch, last_event_id, turns,
           e.started_at - ((:copies - i) + (:copies - i) * (:copies - i) / :copies) * :step / 2, e.completed_at - ((:copies - i) + (:copies - i) * (:copies - i) / :copies) * :step / 2, output_event
    FROM n, execution e JOIN instance ON instance.id = e.instance WHERE instance_id = :seed";

const COPY_HISTORY: &str = "
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :copies)
    INSERT INTO history (instance, execution_id, event_id, data)
    SELECT :base + i, h.execution_id, event_id,
           replace(data, '\"' || :seed || '\"', '\"' || :prefix || printf('%07d', i) || '\"')
    FROM n, history h JOIN instance ON instance.id = h.instance WHERE instance_id = :seed AND payload IS NULL";
