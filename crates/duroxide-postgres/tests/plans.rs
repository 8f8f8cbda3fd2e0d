//! The plans of the statements of a fetch, a commit and an ack, written by `auto_explain` into the server's log.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is a test")]

mod fixture;
#[path = "plans/shown.rs"]
mod shown;

use duroxide_core::{Timestamp, WorkItem};
use duroxide_postgres::{PostgresOptions, PostgresProvider};
use duroxide_provider::{
    NodeAnnouncement, Provider as _, PruneOptions, SessionFetchConfig,
    store::{ActivityFetch, Answer, InstanceFetch, MessageKind, NodeRow, Op, StoreReader as _},
    testing::{Turn, items, scenario},
};
use fixture::{Node, ack, commit, fresh_options, ids, sql::Admin, start};
use postgres_server::{Server, copies_of};

const FUTURE_TIMERS: u64 = 1_000_000;
const FINISHED: u64 = 1_000_000;
/// No step of a plan may touch more rows of a large table.
const ROWS_MAX: f64 = 200.0;
const LARGE: [&str; 4] = ["instance", "message", "execution", "history"];
/// These are small in the tests, and must not be read as a whole either. `route` and `lane` are: each claim counts what is ready for
/// each of their rows.
const OTHERS: [&str; 12] = [
    "node",
    "dead_letter",
    "removal_task",
    "activity",
    "ready_instance",
    "kv",
    "kv_change",
    "custom_status",
    "removal",
    "session",
    "node_lock",
    "intake",
];

/// Copies all rows of an instance this many times.
fn copy(server: &Server, options: &PostgresOptions, id: &str, copies: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        Admin::connect(server).await.run(&copies_of(options.schema.as_str(), id, 1_000_000, copies)).await;
    });
}

/// A step of a plan that reads a table.
struct Step {
    table: String,
    line: String,
    is_whole_table: bool,
    /// Rows of one run, times the number of runs.
    rows: f64,
}

/// Reads a line such as `Index Scan using a on b  (cost=...) (actual time=0.1..0.2 rows=3 loops=2)`.
fn step(line: &str) -> Option<Step> {
    let (reads, costs) = line.split_once("  (cost=")?;
    let table = reads.split(" on ").nth(1)?.split_whitespace().next()?.to_owned();
    let number = |key: &str| -> Option<f64> {
        costs.split_once("(actual ")?.1.split(key).nth(1)?.split([' ', ')']).next()?.parse().ok()
    };
    let rows = number("rows=")? * number("loops=")?;
    Some(Step { table, line: line.trim().to_owned(), is_whole_table: reads.contains("Seq Scan"), rows })
}

/// A life of one instance and of a batch of instances, by a node that has prepared its statements long ago.
fn tour(node: &mut Node, prefix: &str, size: usize) {
    let ids = ids(prefix, size);
    node.run(ids.iter().map(|id| start(id)).collect());
    let claimed = node.claim(size).0;
    assert_eq!(claimed.len(), size);
    node.run(claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).activity())).collect());
    node.raise(&claimed[0].instance);
    let work = node.work(size).0;
    node.run(work.iter().map(ack).collect());
    let claimed = node.claim(size).0;
    let turns = claimed.iter().map(|claim| commit(claim, Turn::later(claim).completed(2).complete("done")));
    node.run(turns.collect());
}

/// A node claims instances and activities, and another one ends it.
fn end_of_a_node(node: &mut Node, prefix: &str, size: usize) {
    let name = prefix.to_owned();
    let row = NodeRow { name: name.clone(), session_owners: Vec::new(), capability: "{}".to_owned() };
    let Ok(Answer::Joined(dead)) = node.run(vec![Op::JoinNode(row)]).0.answers[0] else { unreachable!() };
    node.run(ids(prefix, size).iter().map(|id| start(id)).collect());
    let claimed = node.claim_with(InstanceFetch { node: Some(dead), ..scenario::batch_fetch(size) });
    assert_eq!(claimed.len(), size);
    node.run(vec![Op::EndNode { name, blamed: None }]);
    let claimed = node.claim(size).0;
    assert_eq!(claimed.len(), size, "all are free again");
    node.run(
        claimed.iter().map(|claim| commit(claim, Turn::first(&claim.instance).complete("done"))).collect(),
    );
}

/// Rare operations: children, sessions, state, due timers, renewals, deletes.
fn rare_tour(node: &mut Node, id: &str) {
    node.run(vec![start(id)]);
    let turn = node.claim(1).0;
    let token = turn[0].lock_token.clone();
    node.run(vec![Op::RenewInstance { token, extend_for: scenario::LEASE }]);
    let due = node.at.as_millis() + 50;
    let first =
        Turn::first(id).routed_activity(None, Some(id)).child("sub::1").set("key", "value").timer(due);
    node.run(vec![commit(&turn[0], first.status(Some("busy")))]);
    let session = Some(SessionFetchConfig { owner_id: id.to_owned(), lock_timeout: scenario::LEASE });
    let work = node.work_with(ActivityFetch { session, ..scenario::work_fetch(1) }).0;
    let (owners, token) = (vec![id.to_owned()], work[0].lock_token.clone());
    let renewal = Op::RenewSessions { owners, extend_for: scenario::LEASE, idle_timeout: scenario::LEASE };
    node.run(vec![Op::RenewActivity { token, extend_for: scenario::LEASE }, renewal]);
    node.run(vec![ack(&work[0])]);
    // The database's clock decides that the timer is due.
    let mut fired = false;
    while !fired {
        for claim in node.claim(5).0 {
            fired |= claim.messages.iter().any(|item| matches!(item, WorkItem::TimerFired { .. }));
            let turn = match claim.instance == id {
                true => Turn::later(&claim),
                false => Turn::first_of_child(&claim.instance, id, 1, 3).complete("done"),
            };
            node.run(vec![commit(&claim, turn)]);
        }
    }
    read_all(node, id);
    dead_letters(node, &format!("{id}-unreadable"));
    prune_and_delete(node, id);
}

/// A message and an activity that cannot be decoded. Operators put them back and discard them.
fn dead_letters(node: &mut Node, id: &str) {
    let message = Op::EnqueueMessage(items::undecodable_message(id, MessageKind::Start));
    let activity = Op::EnqueueActivity(items::undecodable_activity(id, 2));
    let mut ops = vec![Op::SetMaxAttempts(0), message, activity];
    for put_back in [true, false] {
        let batch = node.batch(ops, 5, 5);
        let done = node.transact(&batch).0;
        let of_messages = done.instances.into_iter().flatten().flat_map(|claimed| claimed.dead_letters);
        let of_activities = done.activities.into_iter().flatten().flat_map(|claimed| claimed.dead_letters);
        let ids = of_messages.chain(of_activities).map(|letter| letter.id.to_string());
        ops = ids
            .map(|id| if put_back { Op::RetryDeadLetter { id } } else { Op::DiscardDeadLetter { id } })
            .collect();
        assert_eq!(ops.len(), 2);
    }
    node.run(ops);
}

/// Prunes an execution, and deletes a list and a tree.
fn prune_and_delete(node: &mut Node, id: &str) {
    let pruned = format!("{id}-pruned");
    node.run(vec![start(&pruned)]);
    let claim = node.claim(1).0.remove(0);
    node.run(vec![commit(&claim, Turn::first(&pruned).continue_with(Turn::start_of(&pruned, 2)))]);
    node.run(vec![Op::Prune { instance: pruned.clone(), options: PruneOptions::default() }]);
    node.run(vec![Op::DeleteInstances { ids: vec![pruned], force: true }]);
    node.run(vec![Op::DeleteTree { instance: id.to_owned(), force: true }]);
}

/// The reads of clients and operators about one instance.
fn read_all(node: &mut Node, id: &str) {
    let (engine, both) = (&mut node.engine, [id.to_owned(), "nobody".to_owned()]);
    assert!(engine.status(id).unwrap().is_some() && engine.status_or_pending(id).unwrap().is_some());
    assert_eq!(engine.statuses(&both).unwrap().len(), 2);
    assert_eq!(engine.descriptors(&both).unwrap().len(), 2);
    assert_eq!(engine.load_all(&[(id.to_owned(), 1)]).unwrap().len(), 1);
    assert_eq!(engine.executions(id).unwrap(), [1]);
    assert_eq!(engine.children(id).unwrap().len(), 1);
    assert_eq!(engine.kv_values(id).unwrap().len(), 1);
    assert!(engine.custom_status(id).unwrap().is_some() && engine.stats(id).unwrap().is_some());
    assert!(engine.history(id, None).unwrap().len() > 4 && engine.last_event_id(id, 1).unwrap().is_some());
    assert!(engine.instance_info(id).unwrap().is_some());
    assert!(engine.queued_work(id, Timestamp::ZERO).unwrap().is_some());
}

/// A caller has written into the intake, and a node that comes takes it over.
fn take_intake(server: &Server, options: &PostgresOptions, id: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let row = format!(
        "INSERT INTO {}.intake (kind, instance_id, name, data) VALUES ('start', '{id}', 'Order', '{{}}')",
        options.schema
    );
    runtime.block_on(async { Admin::connect(server).await.run(&row).await });
    let mut node = Node::open(options, 9);
    let claimed = node.claim(1).0;
    assert_eq!(claimed[0].instance, id);
    node.run(vec![commit(&claimed[0], Turn::first(id).complete("done"))]);
}

/// A node that listens reads the first ready rows.
fn look_for_first_ready(options: &PostgresOptions, name: &str) {
    let mut node = Node::open(options, 10);
    node.engine = node.engine.as_only_writer();
    tour(&mut node, name, 2);
}

/// The session connection of a node checks which locks have ended.
fn look_for_dead_nodes(server: &Server, options: &PostgresOptions) {
    let before = std::fs::read(server.log()).unwrap().len();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = PostgresProvider::open(options.clone()).await.unwrap();
        let node = NodeAnnouncement { name: "looks".to_owned(), ..NodeAnnouncement::default() };
        let _membership = store.join_node(&node).await.unwrap().unwrap();
        while !String::from_utf8_lossy(&std::fs::read(server.log()).unwrap()[before..])
            .contains("AS listeners")
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
}

/// An operator asks while rows wait in the intake.
fn read_health(server: &Server, options: &PostgresOptions, id: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (store, admin) =
            (PostgresProvider::open(options.clone()).await.unwrap(), Admin::connect(server).await);
        let schema = options.schema.as_str();
        let fill = format!(
            "SELECT pg_advisory_lock(hashtextextended('duroxide intake {schema}', 0));
            INSERT INTO {schema}.intake (kind, instance_id, name, data)
                SELECT 'start', '{id}-' || n, 'Order', '{{}}' FROM generate_series(1, 100) AS n"
        );
        admin.run(&fill).await;
        assert_eq!(store.health().await.unwrap().intake_rows, 100);
        admin.run(&format!("DELETE FROM {schema}.intake")).await;
    });
}

/// The plans of rare operations touch few rows, by indexes.
fn check_rare_plans(server: &Server, options: &PostgresOptions, node: &mut Node, name: &str) {
    let log = logged(server, || {
        rare_tour(node, &format!("{name}-rare"));
        end_of_a_node(node, &format!("{name}-dead"), 20);
        take_intake(server, options, &format!("{name}-intake"));
        look_for_first_ready(options, &format!("{name}-first"));
        look_for_dead_nodes(server, options);
        read_health(server, options, &format!("{name}-health"));
    });
    let tables = [&LARGE[..], &OTHERS[..]].concat();
    for table in &tables {
        let is_read = log.lines().filter_map(step).any(|step| step.table == *table);
        assert!(is_read, "{table} is read: {log}");
    }
    for statement in
        ["lock_node = ", "AS first) AS activities", "AS listeners", "DELETE FROM", "intake", "AS overdue"]
    {
        assert!(log.contains(statement), "{statement}: {log}");
    }
    check_steps(&log, &tables);
}

/// The lines that the server logged while `act` ran.
fn logged(server: &Server, act: impl FnOnce()) -> String {
    let before = std::fs::read(server.log()).unwrap().len();
    act();
    String::from_utf8_lossy(&std::fs::read(server.log()).unwrap()[before..]).into_owned()
}

fn store_with_future_timers(server: &Server) -> PostgresOptions {
    let options = fresh_options(server);
    let mut node = Node::open(&options, 1);
    node.run(vec![start("waits")]);
    let claimed = node.claim(1).0;
    // Later than any lease ends.
    let due = node.at.as_millis() + 3_600_000;
    node.run(vec![commit(&claimed[0], Turn::first("waits").timer(due))]);
    assert!(node.at > Timestamp::ZERO);
    copy(server, &options, "waits", FUTURE_TIMERS);
    options
}

/// A server that writes the plan of every statement into its log.
fn explaining_server() -> Option<Server> {
    let server = Server::own()?;
    server.configure(
        "shared_preload_libraries = 'auto_explain'\nauto_explain.log_analyze = on\nauto_explain.log_timing = off
        auto_explain.log_min_duration = -1\nmax_wal_size = 4GB",
    );
    server.restart_immediately();
    Some(server)
}

/// Connections that are made from now on explain their statements.
fn explain(options: &PostgresOptions) -> PostgresOptions {
    let mut options = options.clone();
    let given = options.config.get_options().unwrap_or_default().to_owned();
    options.config.options(format!("{given} -c auto_explain.log_min_duration=0"));
    options
}

/// The plans of one instance and of a batch of instances touch few rows, by indexes.
fn check_plans(server: &Server, node: &mut Node, name: &str, tables: &[&str]) {
    let log = logged(server, || {
        tour(node, &format!("{name}-one"), 1);
        tour(node, &format!("{name}-many"), 20);
    });
    let steps: Vec<Step> = log.lines().filter_map(step).collect();
    let large: Vec<&Step> = steps.iter().filter(|step| tables.contains(&step.table.as_str())).collect();
    assert!(large.len() > 20, "the plans are in the log: {log}");
    for table in tables {
        assert!(steps.iter().any(|step| step.table == *table), "{table} is read: {log}");
    }
    check_steps(&log, tables);
}

/// No step reads many rows of these tables.
fn check_steps(log: &str, tables: &[&str]) {
    let steps = log.lines().filter_map(step);
    for step in steps.filter(|step| tables.contains(&step.table.as_str())) {
        assert!(!step.is_whole_table, "{}", step.line);
        assert!(step.rows <= ROWS_MAX, "{}", step.line);
    }
    // A line does not name the table of its rows, so this is checked for the tables of queues, too.
    let removed = log.lines().filter(|line| line.contains("Rows Removed by"));
    for line in removed.filter(|_| tables.contains(&"message")) {
        let rows: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(rows <= ROWS_MAX, "{line} in {log}");
    }
}

/// A fetch reads only due rows, however many are due later. A statement that was prepared when the tables were empty gets
/// a generic plan after five runs; that plan is checked, too.
#[test]
fn timers_that_are_due_later_cost_a_fetch_nothing() {
    let Some(server) = explaining_server() else { return };
    let options = explain(&store_with_future_timers(&server));
    let mut node = Node::open(&options, 2);
    for warm_up in 0..8 {
        tour(&mut node, &format!("warm-up-{warm_up}"), 3);
    }
    check_plans(&server, &mut node, "later", &LARGE);
    for warm_up in 0..6 {
        rare_tour(&mut node, &format!("rare-warm-up-{warm_up}"));
    }
    check_rare_plans(&server, &options, &mut node, "later");
}

/// A store that has done its work for long: a million instances that have ended. Statements that were prepared on the small
/// tables, those that are prepared now, and those that are never prepared, as behind a pooler.
#[test]
fn a_million_finished_instances_cost_a_fetch_a_commit_and_an_ack_nothing() {
    let Some(server) = explaining_server() else { return };
    let options = explain(&fresh_options(&server));
    let mut early = Node::open(&options, 1);
    tour(&mut early, "finished", 1);
    for warm_up in 0..6 {
        tour(&mut early, &format!("warm-up-{warm_up}"), 2);
    }
    copy(&server, &options, "finished-0", FINISHED);
    check_plans(&server, &mut early, "early", &LARGE);
    let mut late = Node::open(&options, 2);
    let log = logged(&server, || {
        check_plans(&server, &mut late, "late", &LARGE);
        check_rare_plans(&server, &options, &mut late, "late");
    });
    shown::write(&log);
    let mut unprepared = options;
    unprepared.prepared_statements = false;
    unprepared.config.options("-c auto_explain.log_min_duration=0");
    // Planned anew each time, with the default settings: an empty queue may be read as a whole.
    check_plans(
        &server,
        &mut Node::open(&unprepared, 3),
        "unprepared",
        &["instance", "execution", "history"],
    );
}
