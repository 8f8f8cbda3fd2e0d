//! Many nodes open an old schema at once.

use duroxide_postgres::PostgresEngine;
use duroxide_provider::store::StoreReader as _;

use crate::{
    assert_sound,
    file::{FILES, load},
    fixture::sql::Admin,
    version,
};

const NODES: usize = 10;

/// Many nodes start at once on the oldest schema: they wait for each other, and one of them upgrades it.
#[test]
fn one_of_ten_nodes_that_open_an_old_schema_upgrades_it() {
    let Some(server) = postgres_server::server() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (options, admin) = runtime.block_on(async { (load(server, 1).await, Admin::connect(server).await) });
    let schema = options.schema.as_str();
    let count_upgrades = format!(
        "CREATE SEQUENCE {schema}.upgrades;
        CREATE FUNCTION {schema}.count_upgrade() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM nextval('{schema}.upgrades');
            RETURN NEW;
        END $$;
        CREATE TRIGGER counts AFTER UPDATE ON {schema}.meta FOR EACH ROW
            WHEN (old.schema_version <> new.schema_version) EXECUTE FUNCTION {schema}.count_upgrade()"
    );
    runtime.block_on(admin.run(&count_upgrades));
    // All nodes find the old schema before one of them can begin.
    let lock = format!("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('duroxide {schema}', 0))");
    runtime.block_on(admin.run(&lock));
    std::thread::scope(|scope| {
        let open = || PostgresEngine::open(options.clone()).unwrap().snapshot().unwrap();
        let nodes: Vec<_> = (0..NODES).map(|_| scope.spawn(open)).collect();
        // They wait for the operator, and for each other. A transaction does not see later activity, so another connection looks.
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        runtime.block_on(async {
            let watcher = Admin::connect(server).await;
            let operator: i32 =
                admin.client().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
            while watcher.client().query_one(waiting, &[&operator]).await.unwrap().get::<_, i64>(0)
                < NODES as i64
            {
                assert!(nodes.iter().all(|node| !node.is_finished()), "they wait");
                tokio::task::yield_now().await;
            }
            admin.run("COMMIT").await;
        });
        let snapshots = nodes.into_iter().map(|node| node.join().unwrap());
        snapshots.for_each(|snapshot| assert_sound(&snapshot));
    });
    let upgrades = format!("SELECT last_value FROM {schema}.upgrades WHERE is_called");
    let upgrades: i64 = runtime.block_on(admin.client().query_one(&upgrades, &[])).unwrap().get(0);
    assert_eq!(upgrades, 1);
    assert_eq!(runtime.block_on(version(server, schema)) as usize, FILES.len() + 1);
}
