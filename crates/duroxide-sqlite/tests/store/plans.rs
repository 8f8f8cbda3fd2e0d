//! 23.3: fetching costs index lookups, however much is locked, hidden, filtered or stray.

use std::{collections::BTreeSet, path::Path, time::Duration};

use duroxide_provider::{
    Round, SemverRange, VersionRange,
    store::{InstanceFetch, Op, StoreEngine, StoreReader},
};
use rusqlite::Connection;
use semver::Version;

use crate::fixture::*;

/// SQLite's plan of a statement.
pub(crate) fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // The parameters stay unbound: a plan does not depend on them.
    statement.raw_query().mapped(|row| row.get::<_, String>(3)).map(Result::unwrap).collect()
}

/// Statements that read or change a table without an index, or that sort.
pub(crate) fn expensive(path: &Path, statements: Vec<String>) -> Vec<String> {
    let conn = Connection::open(path).unwrap();
    let distinct: BTreeSet<String> = statements.into_iter().collect();
    let planned = distinct
        .into_iter()
        .filter(|sql| ["SELECT", "INSERT", "UPDATE", "DELETE"].iter().any(|verb| sql.starts_with(verb)));
    let suspicious = |sql: &String| {
        let mut plan = plan(&conn, sql);
        // A statement without a table of its own; those of its parts follow.
        plan.retain(|step| step != "SCAN CONSTANT ROW");
        let plan = plan.join("; ");
        let scans =
            plan.contains("SCAN") && !plan.contains("USING COVERING INDEX") && !plan.contains("USING INDEX");
        scans || (plan.contains("TEMP B-TREE") && !sql.contains("max(enqueued_at, due_at)"))
    };
    planned.filter(suspicious).collect()
}

/// Every statement of the life of an instance finds its rows through an index.
#[test]
fn every_statement_of_claims_and_commits_uses_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    let trace = store.engine.trace_statements();
    store.send(&raise("ghost", "1"));
    store.send(&queued("stray", "1"));
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    let work = store.claim_work().unwrap();
    store.apply(&Op::RenewActivity { token: work.lock_token.clone(), extend_for: LEASE });
    store.apply(&Op::AckActivity { token: work.lock_token, completion: None });
    store.send(&queued("order-1", "1"));
    store.engine.mailbox_holds("order-1", 100).unwrap();
    let claim = store.claim().unwrap();
    store.apply(&Op::RenewInstance { token: claim.lock_token.clone(), extend_for: LEASE });
    let delay = Some(Duration::from_secs(1));
    store.apply(&Op::AbandonInstance { token: claim.lock_token, delay, ignore_attempt: false });
    store.pass(Duration::from_secs(100));
    store.claim();
    store.engine.next_wake(store.now).unwrap();
    store.engine.may_be_ready().unwrap();
    assert_eq!(expensive(&path, trace.statements()), Vec::<String>::new());
}

/// Explaining an instance and showing the queues never read all instances.
#[test]
fn the_reads_that_explain_an_instance_use_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    store.send(&start("order-1"));
    let claim = store.claim().unwrap();
    store.commit(&claim.lock_token, first_round("order-1")).unwrap();
    store.send(&raise("order-1", "1"));
    let trace = store.engine.trace_statements();
    assert_eq!(store.engine.queued_work("order-1", store.now).unwrap().unwrap().activities_total, 1);
    store.engine.queued_work("nobody", store.now).unwrap();
    store.engine.queue_summary(store.now).unwrap();
    let conn = Connection::open(&path).unwrap();
    let is_whole_table = |step: &String| {
        let is_small = ["route", "lane", "node"].iter().any(|table| *step == format!("SCAN {table}"));
        step.starts_with("SCAN") && !step.contains("INDEX") && !is_small
    };
    for sql in trace.statements().into_iter().filter(|sql| sql.starts_with("SELECT")) {
        let plan = plan(&conn, &sql);
        assert!(!plan.iter().any(is_whole_table), "{sql}: {plan:?}");
    }
}

/// 23.3: an empty poll runs the same few statements, on any content, and counts no rows.
#[test]
fn an_empty_poll_costs_the_same_in_a_full_store() {
    let mut empty = Store::in_memory();
    let statements_of_a_poll = |store: &mut Store| {
        assert!(store.claim().is_none(), "the first transaction looks at leases, once");
        let trace = store.engine.trace_statements();
        assert!(store.claim().is_none() && store.claim_work().is_none());
        let statements = trace.statements();
        assert!(statements.iter().all(|sql| !sql.contains("count(")));
        statements
    };
    let expected = statements_of_a_poll(&mut empty);

    let mut full = Store::in_memory();
    for n in 0..50 {
        full.send(&start(&format!("locked-{n}")));
        full.queue(&activity(&format!("locked-{n}"), 2));
        full.claim().unwrap();
        full.claim_work().unwrap();
        full.send(&raise(&format!("ghost-{n}"), "1"));
    }
    assert_eq!(statements_of_a_poll(&mut full), expected);
}

/// Instances that a filter excludes cost one comparison of their route, not one each.
#[test]
fn filtered_instances_cost_nothing() {
    let mut store = Store::in_memory();
    for n in 0..50 {
        store.send(&start(&format!("order-{n}")));
        let claim = store.claim().unwrap();
        let mut round = first_round(&claim.instance);
        round.metadata.pinned_duroxide_version = Some(Version::new(1, 0, 0));
        store.commit(&claim.lock_token, round).unwrap();
    }
    for n in 0..50 {
        store.send(&raise(&format!("order-{n}"), "1"));
    }
    let range = SemverRange::new(Version::new(2, 0, 0), Version::new(2, 9, 0));
    let fetch = InstanceFetch { versions: Some(vec![VersionRange::from(&range)]), ..one_instance() };
    let trace = store.engine.trace_statements();
    assert!(store.claim_with(&fetch).items.is_empty());
    assert!(trace.statements().len() < 12, "{:#?}", trace.statements());
}

/// 15.3: clients ask before every event; while the mailbox cannot be full, nothing is counted.
#[test]
fn a_mailbox_is_counted_only_when_it_may_be_full() {
    let mut store = Store::in_memory();
    for n in 0..5 {
        store.send(&raise("order-1", &n.to_string()));
    }
    let counts = |store: &mut Store, at_least: u64| {
        let trace = store.engine.trace_statements();
        trace.clear();
        let holds = store.engine.mailbox_holds("order-1", at_least).unwrap();
        (holds, trace.statements().iter().any(|sql| sql.contains("count(*)")))
    };
    assert_eq!(counts(&mut store, 5), (true, true));
    assert_eq!(counts(&mut store, 6), (false, false));
    (0..20).for_each(|n| store.send(&raise("order-2", &n.to_string())));
    store.send(&raise("order-1", "late"));
    assert_eq!(counts(&mut store, 6), (true, true));
    assert_eq!(counts(&mut store, 7), (false, true), "far apart, they may be many");
    assert_eq!(counts(&mut store, 100), (false, false));
}

/// A turn costs a fixed number of statements, and each activity and timer it schedules one more.
#[test]
fn a_turn_keeps_its_number_of_statements() {
    let mut store = Store::in_memory();
    let mut commit = |instance: &str, activities: u64| {
        store.send(&start(instance));
        let trace = store.engine.trace_statements();
        trace.clear();
        let claim = store.claim().unwrap();
        let claimed = trace.statements().len();
        let round = Round {
            history_delta: vec![started(instance)],
            worker_items: (0..activities).map(|n| activity(instance, 2 + n)).collect(),
            orchestrator_items: (0..activities).map(|n| timer(instance, 1_000 + n)).collect(),
            ..first_round(instance)
        };
        store.commit(&claim.lock_token, round).unwrap();
        (claimed, trace.statements().len() - claimed)
    };
    commit("warm-up", 1);
    let (claimed, committed) = commit("order-1", 0);
    assert!(claimed <= 16, "a claim runs {claimed} statements");
    assert!(committed <= 15, "a commit runs {committed} statements");
    let (_, of_one) = commit("order-2", 1);
    let (_, of_many) = commit("order-3", 1_001);
    assert_eq!(of_many - of_one, 2 * 1_000);
}

/// A claim that got all it asked for still returns whether ready items are left, so that no further query is needed.
#[test]
fn a_claim_reports_whether_it_took_all() {
    let mut store = Store::in_memory();
    for n in 0..2 {
        store.send(&start(&format!("order-{n}")));
        store.queue(&activity(&format!("order-{n}"), 2));
    }
    let instances = [(); 3].map(|()| store.claim_with(&one_instance())).map(|claimed| claimed.took_all);
    assert_eq!(instances, [false, true, true]);
    let activities = [(); 3].map(|()| store.claim_work_with(&one_activity())).map(|claimed| claimed.took_all);
    assert_eq!(activities, [false, true, true]);
}

/// Suspects that wait for a free slot are left, and the claim reports them.
#[test]
fn a_claim_that_stops_in_front_of_possible_poison_did_not_take_all() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    let token = store.claim().unwrap().lock_token;
    store.apply(&Op::AbandonInstance { token, delay: None, ignore_attempt: false });
    let busy = InstanceFetch { free_slots: 0, ..one_instance() };
    let claimed = store.claim_with(&busy);
    assert!(claimed.items.is_empty() && !claimed.took_all);
}

/// After every transaction the store asks when something is due next: one statement.
#[test]
fn the_next_due_time_is_one_statement() {
    let mut store = Store::in_memory();
    store.send(&start("order-1"));
    store.claim().unwrap();
    let trace = store.engine.trace_statements();
    assert_eq!(store.engine.next_wake(store.now).unwrap(), Some(store.now.saturating_add(LEASE)));
    assert_eq!(trace.statements().len(), 1);
}
