//! Several nodes on one schema.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_postgres::PostgresEngine;
use duroxide_provider::{
    HandlerCapability,
    store::{
        ActivityFetch, Answer, BatchPart, FailureClass, Fault, InstanceFetch, NodeRow, Op, StoreEngine,
        StoreReader, TransactionSteps,
    },
    testing::{Turn, items, scenario},
};
use fixture::{
    Node, ack, claims, commit, fresh_options, ids, send,
    sql::{end_connections, run},
    start,
};

/// Two nodes on a fresh schema, with connections that have prepared their first statements.
fn two_nodes() -> Option<(Node, Node)> {
    let options = fresh_options(postgres_server::server()?);
    Some((Node::open(&options, 1), Node::open(&options, 2)))
}

#[test]
fn ten_nodes_open_a_schema_at_once() {
    let Some(server) = postgres_server::server() else { return };
    for create_schema in ["", "CREATE SCHEMA {s}"] {
        let options = fresh_options(server);
        run(server, &create_schema.replace("{s}", options.schema.as_str()));
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| PostgresEngine::open(options.clone()).unwrap());
            }
        });
    }
}

/// 24.2
#[test]
fn a_claim_skips_instances_that_another_node_is_claiming() {
    let Some((mut one, mut other)) = two_nodes() else { return };
    one.run(ids("a", 3).iter().map(|id| start(id)).collect());
    one.engine.steps().begin(one.at).unwrap();
    let first = one.engine.steps().claim_instances(&scenario::batch_fetch(2), 7).unwrap().items;
    assert_eq!(first.len(), 2);
    // The first claim has locked one row more than it took, to know whether a row is left.
    let (none, _) = other.claim(5);
    assert_eq!(none.len(), 0, "it did not wait, and took nothing twice");
    one.engine.steps().commit().unwrap();
    let (second, _) = other.claim(5);
    assert_eq!(second.len(), 1);
    assert!(first.iter().all(|claim| claim.instance != second[0].instance));
}

#[test]
fn instances_without_a_handler_on_a_node_stay_free_for_others() {
    let Some((mut one, mut other)) = two_nodes() else { return };
    one.run(vec![start("a")]);
    let none =
        HandlerCapability { supported_orchestrations: Some([].into()), ..HandlerCapability::default() };
    let mut fetch = scenario::batch_fetch(5);
    fetch.handlers = Some(none);
    one.engine.steps().begin(one.at).unwrap();
    let claimed = one.engine.steps().claim_instances(&fetch, 7).unwrap();
    assert_eq!((claimed.items.len(), claimed.held_back.orchestration), (0, 1));
    assert_eq!(other.claim(5).0.len(), 1, "the other transaction is still open");
    one.engine.steps().rollback();
}

/// 24.4: the start of the other node is found by the second try.
#[test]
fn two_nodes_that_start_one_instance_make_one() {
    let Some((mut one, mut other)) = two_nodes() else { return };
    one.run(vec![start("of the same route")]);
    one.engine.steps().begin(one.at).unwrap();
    assert!(matches!(one.engine.steps().apply(&start("a"), one.at).unwrap(), Answer::Begun));
    other.run(vec![start("a")]);
    let failure = one.engine.steps().commit().unwrap_err();
    assert_eq!(failure.class, FailureClass::LostRace, "{failure}");
    one.engine.steps().rollback();
    let (done, _) = one.run(vec![start("a")]);
    assert!(matches!(done.answers[0], Ok(Answer::Found(_))));
}

/// 24.3: a message that is sent while a turn runs must not get a number that the turn's lock covers: the commit would delete it
/// unseen.
#[test]
fn a_number_that_was_drawn_before_its_mailbox_was_locked_is_not_used() {
    let Some((mut one, mut other)) = two_nodes() else { return };
    one.run(vec![start("a")]);
    let claimed = one.claim(1).0;
    one.run(vec![commit(&claimed[0], Turn::first("a"))]);
    // The start draws numbers; they are lower than those that the other node draws next.
    one.engine.steps().begin(one.at).unwrap();
    one.engine.steps().apply(&start("b"), one.at).unwrap();
    let batch = other.batch(vec![send(items::raise("a", "early"))], 1, 0);
    let turn = claims(other.transact(&batch).0);
    assert_eq!(turn[0].messages.len(), 1);
    one.engine.steps().apply(&send(items::raise("a", "late")), one.at).unwrap();
    one.engine.steps().commit().unwrap();
    other.run(vec![commit(&turn[0], Turn::later(&turn[0]))]);
    let next = other.claim_with(duroxide_provider::store::InstanceFetch {
        only: Some("a".to_owned()),
        ..scenario::batch_fetch(1)
    });
    assert_eq!(next[0].messages, [items::raise("a", "late")]);
}

/// 24.5: a node commits a turn on rows that it remembers. An event that another node has stored since is not lost.
#[test]
fn a_commit_on_remembered_rows_notices_that_another_node_has_changed_them() {
    let Some((mut one, mut other)) = two_nodes() else { return };
    one.run(vec![start("a"), start("b")]);
    // The first claims and commits prepare their statements.
    for (id, is_changed) in [("a", false), ("b", true)] {
        let claimed = one.claim_with(InstanceFetch { only: Some(id.to_owned()), ..scenario::batch_fetch(1) });
        if is_changed {
            other.raise(id);
        }
        let mut batch = one.batch(vec![commit(&claimed[0], Turn::first(id))], 0, 0);
        batch.promote = false;
        one.transact(&batch);
    }
    let claimed = other.claim(2).0;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].messages, [items::raise("b", "go")]);
}

/// D10: the process that ends the node need not know how long its leases are. The instance waits for a timer that is due
/// before its lease ends, or later, or has just been started.
#[test]
fn claims_of_a_dead_node_are_found_with_leases_of_any_length() {
    let Some((mut dead, mut heir)) = two_nodes() else { return };
    for lease in [Duration::from_secs(30), Duration::from_secs(600), Duration::from_secs(60 * 60 * 24)] {
        for timer in [None, Some(Duration::from_secs(300)), Some(Duration::from_secs(60 * 60))] {
            let name = format!("dead after {lease:?}, {timer:?}");
            let row = NodeRow { name: name.clone(), session_owners: Vec::new(), capability: "{}".to_owned() };
            let joined = dead.run(vec![Op::JoinNode(row)]).0;
            let Ok(Answer::Joined(node)) = joined.answers[0] else { unreachable!() };
            dead.run(vec![start(&name)]);
            if let Some(timer) = timer {
                let claimed = dead.claim(1).0;
                let due = dead.at.saturating_add(timer).as_millis();
                dead.run(vec![commit(&claimed[0], Turn::first(&name).timer(due))]);
                dead.raise(&name);
            }
            let fetch = InstanceFetch { lock_timeout: lease, node: Some(node), ..scenario::batch_fetch(1) };
            assert_eq!(dead.claim_with(fetch).len(), 1);
            assert_eq!(heir.claim(1).0.len(), 0);
            heir.run(vec![Op::EndNode { name: name.clone(), blamed: None }]);
            let again = heir.claim(1).0;
            assert_eq!(again.len(), 1, "{name}");
            heir.run(vec![commit(&again[0], Turn::later(&again[0]).complete("done"))]);
        }
    }
}

/// D10: a lease that has lasted for a while, and was read meanwhile, ends with its node, too.
#[test]
fn claims_of_a_dead_node_are_found_after_minutes() {
    let Some(server) = postgres_server::server() else { return };
    let mut node = Node::open_in_virtual_time(&fresh_options(server), 1);
    let row = NodeRow { name: "dead".to_owned(), session_owners: Vec::new(), capability: "{}".to_owned() };
    let Ok(Answer::Joined(dead)) = node.run(vec![Op::JoinNode(row)]).0.answers[0] else { unreachable!() };
    node.run(vec![start("a")]);
    let lease = Duration::from_secs(600);
    let fetch = InstanceFetch { lock_timeout: lease, node: Some(dead), ..scenario::batch_fetch(1) };
    assert_eq!(node.claim_with(fetch).len(), 1);
    for _ in 0..5 {
        node.clock = node.clock.saturating_add(Duration::from_secs(100));
        assert_eq!(node.claim(1).0.len(), 0);
    }
    node.run(vec![Op::EndNode { name: "dead".to_owned(), blamed: None }]);
    assert_eq!(node.claim(1).0.len(), 1);
    assert!(node.engine.snapshot().is_ok());
}

#[test]
fn a_lost_connection_is_unavailable_and_can_be_opened_again() {
    let Some(server) = postgres_server::server() else { return };
    let mut options = fresh_options(server);
    options.config.application_name("cut off");
    let mut node = Node::open(&options, 1);
    node.run(vec![start("a")]);
    end_connections(server, "cut off");
    let fault = node.try_run(vec![start("b")]).unwrap_err();
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
    node.engine.reopen().unwrap();
    let (done, _) = node.run(vec![start("a"), start("b")]);
    assert!(matches!(done.answers[..], [Ok(Answer::Found(_)), Ok(Answer::Begun)]), "{done:?}");
}

#[test]
fn a_text_that_cannot_be_stored_is_refused_and_nothing_happens() {
    let Some((mut one, _)) = two_nodes() else { return };
    one.run(vec![start("a")]);
    let claimed = one.claim(1).0;
    let turn = Turn::first("a").status(Some("a\0b"));
    let fault = one.try_run(vec![start("b"), commit(&claimed[0], turn)]).unwrap_err();
    assert!(matches!(fault, Fault::Broken { part: BatchPart::SomeOperation, .. }), "{fault:?}");
    assert_eq!(one.engine.status_or_pending("b").unwrap(), None);
    one.run(vec![start("b"), commit(&claimed[0], Turn::first("a"))]);
}

#[test]
fn the_time_of_a_transaction_is_that_of_the_database() {
    let Some((mut one, mut other)) = two_nodes() else { return };
    let (first, _) = one.run(Vec::new());
    let (second, _) = other.run(Vec::new());
    assert!(first.now > Timestamp::ZERO && first.now <= second.now);
}

/// A node that joins and ends in one transaction has no row, and claims that its last transaction ended are not ended
/// again.
#[test]
fn a_node_ends_behind_other_operations_of_its_transaction() {
    let Some((mut node, mut other)) = two_nodes() else { return };
    let row = |name: &str| NodeRow {
        name: name.to_owned(),
        session_owners: vec![format!("owner of {name}")],
        capability: "{}".to_owned(),
    };
    let end = |name: &str| Op::EndNode { name: name.to_owned(), blamed: None };
    let Ok(Answer::Joined(dead)) = node.run(vec![Op::JoinNode(row("dead"))]).0.answers[0] else {
        unreachable!()
    };
    node.run(vec![start("a")]);
    let turn = node.claim(1).0;
    node.run(vec![commit(&turn[0], Turn::first("a").activity())]);
    let work = node.work_with(ActivityFetch { node: Some(dead), ..scenario::work_fetch(1) }).0;
    let join = || Op::JoinNode(row("brief"));
    let (done, _) = other.run(vec![ack(&work[0]), end("dead"), end("dead"), join(), end("brief")]);
    assert_eq!(other.work(1).0.len(), 0, "it was done");
    assert_eq!(other.claim(1).0[0].messages.len(), 1);
    // A node that has a row keeps its number.
    assert_ne!(format!("{:?}", other.run(vec![join()]).0.answers[0]), format!("{:?}", done.answers[3]));
}
