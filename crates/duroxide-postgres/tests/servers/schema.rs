//! The parts of a schema, and settings of a role that have no effect.

use crate::fixture::{Node, ack, commit, fresh_options, send, sql::Admin, start};
use duroxide_postgres::PostgresEngine;
use duroxide_provider::{
    store::StoreReader as _,
    testing::{Turn, items},
};
use postgres_server::Server;

/// Runs a question of the operator, with one text as its answer.
fn asked(server: &Server, sql: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let rows = Admin::connect(server).await.client().query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    })
}

/// All rules are in the program, so that a schema never has to be of the same version as a function in it.
#[test]
fn there_are_no_functions_and_no_triggers() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    drop(PostgresEngine::open(options.clone()).unwrap());
    let schema = options.schema.as_str();
    let found = format!(
        "SELECT proname::text FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace
        UNION ALL SELECT tgname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
            WHERE relnamespace = '{schema}'::regnamespace
        UNION ALL SELECT rulename::text FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
            WHERE relnamespace = '{schema}'::regnamespace"
    );
    assert_eq!(asked(server, &found), [] as [&str; 0]);
}

/// As documented in docs/postgres.md.
#[test]
fn tables_leave_room_and_are_vacuumed_as_documented() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    drop(PostgresEngine::open(options.clone()).unwrap());
    let settings = |table: &str| {
        let sql = format!(
            "SELECT unnest(reloptions) FROM pg_class WHERE oid = '{}.{table}'::regclass ORDER BY 1",
            options.schema
        );
        asked(server, &sql)
    };
    let queue = [
        "autovacuum_vacuum_cost_delay=0",
        "autovacuum_vacuum_scale_factor=0",
        "autovacuum_vacuum_threshold=5000",
    ];
    for table in ["ready_instance", "message", "activity"] {
        let found = settings(table);
        assert!(queue.iter().all(|setting| found.iter().any(|found| found == setting)), "{table}: {found:?}");
    }
    let shared = |share: &str, fill: &str| {
        [
            format!("autovacuum_vacuum_scale_factor={share}"),
            "autovacuum_vacuum_threshold=5000".to_owned(),
            format!("fillfactor={fill}"),
        ]
    };
    assert_eq!(settings("instance"), shared("0.02", "50"));
    assert_eq!(settings("execution"), shared("0.05", "80"));
}

/// A serializable transaction holds predicate locks on the rows it reads while another one runs.
#[test]
fn transactions_are_read_committed_whatever_the_default_of_the_role_is() {
    let Some(server) = postgres_server::server() else { return };
    let mut options = fresh_options(server);
    let role = format!("strict_{}", options.schema);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let admin = runtime.block_on(Admin::connect(server));
    runtime.block_on(admin.run(&format!(
        "CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET default_transaction_isolation = 'serializable'"
    )));
    runtime.block_on(admin.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM pg_class"));
    options.config.user(&role);
    let mut node = Node::open(&options, 1);
    node.run(vec![start("a")]);
    let claimed = node.claim(1).0;
    node.run(vec![commit(&claimed[0], Turn::first("a").activity())]);
    node.raise("a");
    node.run(vec![send(items::raise("a", "go"))]);
    let work = node.work(1).0;
    node.run(work.iter().map(ack).collect());
    assert!(node.engine.status_or_pending("a").unwrap().is_some());
    let marks = format!(
        "SELECT DISTINCT relname::text FROM pg_locks JOIN pg_class ON pg_class.oid = relation
        WHERE mode = 'SIReadLock' AND relnamespace = '{}'::regnamespace",
        options.schema
    );
    assert_eq!(asked(server, &marks), [] as [&str; 0]);
    runtime.block_on(admin.run("COMMIT"));
}
