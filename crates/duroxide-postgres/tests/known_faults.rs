//! Faults that queues on a database are known for, each as a story of two nodes on one schema.
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod fixture;

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::{
    OrchestrationClaim, SessionFetchConfig, WorkClaim,
    store::{
        ActivityFetch, Answer, FailureClass, Fault, InstanceFetch, NodeRow, Op, Refusal, StoreEngine,
        StoreReader, TransactionSteps,
    },
    testing::{Turn, items, scenario, scenario::LEASE},
};
use fixture::{
    Node, ack, claims, commit, fresh_options, ids, send,
    sql::{Admin, end_connections},
    start,
};
use postgres_server::Server;

/// Two nodes on a fresh schema that share a virtual clock.
struct Pair {
    one: Node,
    other: Node,
}

impl Pair {
    fn open() -> Option<Self> {
        let options = fresh_options(postgres_server::server()?);
        let open = |nonce| Node::open_in_virtual_time(&options, nonce);
        Some(Self { one: open(1), other: open(2) })
    }

    fn pass(&mut self, time: Duration) {
        for node in [&mut self.one, &mut self.other] {
            node.clock = node.clock.saturating_add(time);
        }
    }

    /// One activity that is queued, of an instance that waits for it.
    fn with_activity() -> Option<Self> {
        let mut pair = Self::open()?;
        pair.one.run(vec![start("a")]);
        let claim = pair.one.claim(1).0.remove(0);
        pair.one.run(vec![commit(&claim, Turn::first("a").activity())]);
        Some(pair)
    }
}

fn take(node: &mut Node) -> WorkClaim {
    node.work(5).0.pop().unwrap()
}

fn renew(work: &WorkClaim) -> Op {
    Op::RenewActivity { token: work.lock_token.clone(), extend_for: LEASE }
}

fn renew_turn(claim: &OrchestrationClaim) -> Op {
    Op::RenewInstance { token: claim.lock_token.clone(), extend_for: LEASE }
}

/// 24.1: a fetch that had to wait, here for a row that another transaction has locked, does not begin its leases before it has
/// waited: they could be over when the fetch returns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_hands_out_no_lease_that_began_before_it_waited() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut node = tokio::task::block_in_place(|| {
        let mut node = Node::open(&options, 1);
        node.run(vec![start("blocked"), start("free")]);
        node
    });
    let (admin, watcher) = (Admin::connect(server).await, Admin::connect(server).await);
    let schema = &options.schema;
    let lock = format!("BEGIN; SELECT 1 FROM {schema}.instance WHERE id = 'blocked' FOR UPDATE");
    admin.run(&lock).await;
    let blocker: i32 = admin.client().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);

    let fetch = std::thread::spawn(move || {
        let mut batch = node.batch(vec![send(items::raise("blocked", "go"))], 0, 0);
        let fetch = InstanceFetch { only: Some("free".to_owned()), ..scenario::batch_fetch(1) };
        batch.instance_fetches = vec![fixture::fetch(fetch)];
        assert_eq!(claims(node.transact(&batch).0).len(), 1);
        node.engine.snapshot().unwrap()
    });
    let waits = "SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
    while watcher.client().query(waits, &[&blocker]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let waited_until: i64 = admin.client().query_one(now, &[]).await.unwrap().get(0);
    admin.run("COMMIT").await;

    let snapshot = tokio::task::block_in_place(|| fetch.join().unwrap());
    let free = snapshot.instances.iter().find(|instance| instance.instance == "free").unwrap();
    let until = free.lock.as_ref().unwrap().until;
    let waited_until = Timestamp::from_micros(u64::try_from(waited_until).unwrap());
    assert!(until >= waited_until.saturating_add(LEASE), "{until:?} is too early after {waited_until:?}");
}

#[test]
fn an_ack_after_a_takeover_is_refused_and_one_completion_is_recorded() {
    let Some(mut pair) = Pair::with_activity() else { return };
    let late = take(&mut pair.one);
    pair.pass(LEASE);
    let taken_over = take(&mut pair.other);
    assert_eq!(taken_over.attempt_count, 2);
    assert_eq!(pair.one.apply(ack(&late)).unwrap_err(), Refusal::WorkItemLockLost);
    pair.other.run(vec![ack(&taken_over)]);
    assert_eq!(pair.one.apply(ack(&late)).unwrap_err(), Refusal::WorkItemLockLost);
    let turn = pair.one.claim(1).0.remove(0);
    assert_eq!(turn.messages.len(), 1);
}

#[test]
fn a_late_commit_does_not_overwrite_its_successor() {
    let Some(mut pair) = Pair::open() else { return };
    pair.one.run(vec![start("a")]);
    let late = pair.one.claim(1).0.remove(0);
    pair.pass(LEASE);
    let successor = pair.other.claim(1).0.remove(0);
    let refused = pair.one.apply(commit(&late, Turn::first("a").complete("late")));
    assert_eq!(refused.unwrap_err(), Refusal::InvalidLockToken);
    pair.other.run(vec![commit(&successor, Turn::first("a").complete("successor"))]);
    let refused = pair.one.apply(commit(&late, Turn::first("a").complete("late")));
    assert_eq!(refused.unwrap_err(), Refusal::InvalidLockToken);
    let instance = pair.one.engine.snapshot().unwrap().instances.remove(0);
    assert_eq!(instance.executions[0].output.as_deref(), Some("successor"));
}

/// A process is started again under the name of its predecessor, as a node and as the owner of a session. The locks of
/// the predecessor do not count as those of the new process.
#[test]
fn a_reused_worker_id_lets_no_stale_completion_pass() {
    let Some(mut pair) = Pair::open() else { return };
    let join = || {
        let (session_owners, capability) = (Vec::new(), "{}".to_owned());
        Op::JoinNode(NodeRow { name: "worker".to_owned(), session_owners, capability })
    };
    let Ok(Answer::Joined(node)) = pair.one.apply(join()) else { panic!("it joins") };
    pair.one.run(vec![start("a")]);
    let claim = pair.one.claim(1).0.remove(0);
    pair.one.run(vec![commit(&claim, Turn::first("a").routed_activity(None, Some("s")))]);
    let session = SessionFetchConfig { owner_id: "worker".to_owned(), lock_timeout: LEASE };
    let fetch =
        || ActivityFetch { session: Some(session.clone()), node: Some(node), ..scenario::work_fetch(1) };
    let stale = pair.one.work_with(fetch()).0.remove(0);

    let Ok(Answer::Joined(same)) = pair.other.apply(join()) else { panic!("it joins") };
    assert_eq!(same, node);
    pair.pass(LEASE);
    let fresh = pair.other.work_with(fetch()).0.remove(0);
    assert_ne!(stale.lock_token, fresh.lock_token);
    assert_eq!(pair.one.apply(ack(&stale)).unwrap_err(), Refusal::WorkItemLockLost);
    pair.other.run(vec![ack(&fresh)]);
}

#[test]
fn an_ended_lease_is_not_renewed() {
    let Some(mut pair) = Pair::with_activity() else { return };
    let work = take(&mut pair.one);
    pair.one.run(vec![start("b")]);
    let turn = pair.one.claim(1).0.remove(0);
    pair.pass(LEASE);
    // No node has taken over yet, but one may be about to.
    assert_eq!(pair.one.apply(renew(&work)).unwrap_err(), Refusal::WorkItemLockLost);
    assert_eq!(pair.one.apply(renew_turn(&turn)).unwrap_err(), Refusal::InstanceLockExpired);
    assert_eq!(take(&mut pair.other).attempt_count, 2);
    assert_eq!(pair.other.claim(1).0.remove(0).attempt_count, 2);
    assert_eq!(pair.one.apply(renew(&work)).unwrap_err(), Refusal::WorkItemLockLost);
    assert_eq!(pair.one.apply(renew_turn(&turn)).unwrap_err(), Refusal::InvalidLockToken);
}

/// After any retryable failure the item is ready for the next call.
#[test]
fn a_retryable_failure_strands_no_item() {
    let Some(server) = postgres_server::server() else { return };
    let mut options = fresh_options(server);
    let name = options.schema.to_string();
    options.config.application_name(&name);
    let mut node = Node::open(&options, 1);
    node.run(vec![start("a")]);
    let batch = node.batch(Vec::new(), 1, 0);
    for _ in 0..2 {
        end_connections(server, &name);
        let fault = node.engine.transact(&batch).unwrap_err();
        assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
        node.engine.reopen().unwrap();
    }
    let claim = node.claim(1).0.remove(0);
    assert_eq!(claim.attempt_count, 1, "fetches that failed took nothing and count for nothing");
    node.run(vec![commit(&claim, Turn::first("a").activity())]);
    let work = take(&mut node);
    end_connections(server, &name);
    assert!(matches!(node.try_run(vec![ack(&work)]).unwrap_err(), Fault::Unavailable(_)));
    node.engine.reopen().unwrap();
    node.run(vec![ack(&work)]);
    assert_eq!(node.claim(1).0.remove(0).messages.len(), 1, "the completion is there, once");
}

/// A process that is frozen in the middle of a transaction, with rows locked, blocks other processes for seconds, not for ever;
/// and when it goes on, it commits nothing.
#[test]
fn a_node_that_is_frozen_in_a_transaction_does_not_block_others() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let (mut frozen, mut other) = (Node::open(&options, 1), Node::open(&options, 2));
    frozen.run(vec![start("a")]);
    frozen.engine.steps().begin(frozen.at).unwrap();
    frozen.engine.steps().apply(&send(items::raise("a", "of the frozen one")), frozen.at).unwrap();
    other.run(vec![send(items::raise("a", "of the other"))]);
    let failure = frozen.engine.steps().commit().unwrap_err();
    assert_ne!(failure.class, FailureClass::Permanent, "{failure}");
    frozen.engine.reopen().unwrap();
    let messages = frozen.claim(1).0.remove(0).messages;
    assert!(messages.contains(&items::raise("a", "of the other")), "{messages:?}");
    assert_eq!(messages.len(), 2, "{messages:?}");
}

/// 24.1: the database's clock decides: a node whose own clock is wrong by an hour neither takes leases of other nodes nor fires
/// timers too early, and its leases and delays have the usual length.
#[test]
fn a_clock_that_is_wrong_by_an_hour_changes_nothing() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let mut right = Node::open(&options, 1);
    let hour = Duration::from_secs(3_600);
    let now = right.run(Vec::new()).0.now;
    for (nonce, clock) in [(2, now.saturating_add(hour)), (3, now.saturating_sub(hour))] {
        let mut wrong = Node::open(&options, nonce);
        wrong.clock = clock;
        let ids = ids(&format!("of-{nonce}"), 3);
        wrong.run(ids.iter().map(|id| start(id)).collect());
        let held = right.claim(1).0.remove(0);
        let seen: Vec<_> = wrong.claim(5).0.into_iter().map(|claim| claim.instance).collect();
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(!seen.contains(&held.instance), "a lease is live for everybody");
        let due = now.saturating_add(hour / 2).as_millis();
        right.run(vec![commit(&held, Turn::first(&held.instance).timer(due))]);
        assert_eq!(wrong.claim(5).0.len(), 0, "the timer is due in half an hour");

        let snapshot = right.engine.snapshot().unwrap();
        let at = right.run(Vec::new()).0.now;
        for instance in snapshot.instances.iter().filter(|instance| seen.contains(&instance.instance)) {
            let until = instance.lock.as_ref().unwrap().until;
            assert!(until > at && until <= at.saturating_add(LEASE), "{until:?} at {at:?}");
        }
    }
}

/// The least and the largest value of each column of the schema that holds a time.
fn times(server: &Server, schema: &str) -> Vec<(String, i64, i64)> {
    const COLUMNS: &str = "SELECT table_name::text, column_name::text FROM information_schema.columns
        WHERE table_schema = $1 AND column_name LIKE '%\\_at' ORDER BY 1, 2";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let admin = Admin::connect(server).await;
        let mut times = Vec::new();
        for column in admin.client().query(COLUMNS, &[&schema]).await.unwrap() {
            let (table, name): (String, String) = (column.get(0), column.get(1));
            let sql = format!("SELECT min({name}), max({name}) FROM {schema}.{table} WHERE {name} > 0");
            let row = admin.client().query_one(&sql, &[]).await.unwrap();
            if let (Some(least), Some(largest)) = (row.get(0), row.get(1)) {
                times.push((format!("{table}.{name}"), least, largest));
            }
        }
        times
    })
}

/// A node does something of everything.
fn do_everything(node: &mut Node) {
    let (name, session_owners) = ("node".to_owned(), vec!["owner".to_owned()]);
    let join = Op::JoinNode(NodeRow { name, session_owners, capability: "{}".to_owned() });
    let Ok(Answer::Joined(number)) = node.apply(join) else { panic!("it joins") };
    node.run(ids("i", 3).iter().map(|id| start(id)).collect());
    let claims = node.claim(3).0;
    let [ends, works, waits] = claims.as_slice() else { panic!("{claims:?}") };
    node.run(vec![
        commit(ends, Turn::first(&ends.instance).complete("done")),
        commit(works, Turn::first(&works.instance).routed_activity(None, Some("s")).activity()),
        commit(waits, Turn::first(&waits.instance)),
    ]);
    let session = SessionFetchConfig { owner_id: "owner".to_owned(), lock_timeout: LEASE };
    let fetch = ActivityFetch { session: Some(session), node: Some(number), ..scenario::work_fetch(2) };
    assert_eq!(node.work_with(fetch).0.len(), 2);
    // By a statement of its own, and as any other operation.
    node.raise(&waits.instance);
    node.run(vec![send(items::raise(&works.instance, "go")), send(items::raise("unknown", "go"))]);
}

/// 24.1: all stored times are of the database's clock, whichever node stores them.
#[test]
fn no_stored_time_is_that_of_a_client() {
    let Some(server) = postgres_server::server() else { return };
    let hour = Duration::from_secs(3_600);
    let wrong: [fn(Timestamp, Duration) -> Timestamp; 2] =
        [Timestamp::saturating_add, Timestamp::saturating_sub];
    for clock in wrong {
        let options = fresh_options(server);
        let mut node = Node::open(&options, 1);
        let from = node.run(Vec::new()).0.now;
        node.clock = clock(from, hour);
        do_everything(&mut node);
        let to = node.run(Vec::new()).0.now;
        let times = times(server, options.schema.as_str());
        let micros = |time: Timestamp| i64::try_from(time.as_micros()).unwrap();
        for (column, least, largest) in &times {
            // The time of the next poll, which is soon.
            let to = if column == "instance.look_at" { to.saturating_add(hour / 2) } else { to };
            assert!(*least >= micros(from) && *largest <= micros(to), "{column}: {from:?} {to:?} {times:?}");
        }
        let columns: Vec<&str> = times.iter().map(|(column, _, _)| column.as_str()).collect();
        let instance = ["instance.created_at", "instance.updated_at", "message.enqueued_at"];
        let others =
            ["execution.started_at", "execution.completed_at", "node.seen_at", "session.last_activity_at"];
        for column in instance.into_iter().chain(others) {
            assert!(columns.contains(&column), "nothing in {column}: {columns:?}");
        }
    }
}
