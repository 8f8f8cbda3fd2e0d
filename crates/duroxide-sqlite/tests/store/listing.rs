//! Listing many instances: the selection and its cost.

use std::path::Path;

use duroxide_core::{Event, EventKind};
use duroxide_provider::{
    InstanceQuery, Round,
    store::{EventRow, Op, StoreReader},
};
use rusqlite::Connection;

use crate::{
    fixture::*,
    plans::{expensive, plan},
};

fn run(store: &mut Store, instance: &str) {
    store.send(&start(instance));
    let claim = store.claim().unwrap();
    assert_eq!(claim.instance, instance);
    store.commit(&claim.lock_token, first_round(instance)).unwrap();
}

fn ids(store: &mut Store, query: &InstanceQuery) -> Vec<String> {
    let selected = store.engine.select_instances(query, None, 1_000).unwrap();
    selected.into_iter().map(|selected| selected.info.instance_id).collect()
}

/// The plan by which a page of two is found from a cursor on.
fn way(store: &mut Store, path: &Path, query: &InstanceQuery) -> String {
    let trace = store.engine.trace_statements();
    store.engine.select_instances(query, Some(1_000_000_000), 2).unwrap();
    let statements = trace.statements();
    let page = statements.iter().rfind(|sql| sql.contains("ORDER BY id DESC")).unwrap();
    plan(&Connection::open(path).unwrap(), page).join("; ")
}

/// Adds instances behind the store's back, more than are ever sorted.
fn crowd(path: &Path, prefix: &str, status: &str, created_at: u32) {
    let connection = Connection::open(path).unwrap();
    let sql = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1001)
        INSERT INTO instance (id, instance_id, known, name, version, status, created_at, updated_at)
            SELECT (SELECT max(id) FROM instance) + n, ?1 || n, 1, 'Crowd', '1.0.0', ?2, ?3 * 1000, 0 FROM n";
    connection.execute(sql, (prefix, status, created_at)).unwrap();
}

/// 23.3: a page is found by seeks from its cursor on, not by a walk over all instances or a sort of them.
#[test]
fn pages_are_found_through_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    (0..3).for_each(|n| run(&mut store, &format!("order-{n}")));
    let all = InstanceQuery::default;
    for (query, seek) in [
        (all(), "INTEGER PRIMARY KEY (rowid<?)"),
        (all().status("Running"), "INDEX instance_status (status=? AND id<?)"),
        (all().parent("order-1"), "INDEX instance_parent (parent=? AND rowid<?)"),
        (all().orchestration_name("Pay"), "INDEX instance_name (name=? AND rowid<?)"),
    ] {
        let trace = store.engine.trace_statements();
        let way = way(&mut store, &path, &query);
        assert!(way.contains(seek), "{query:?}: {way}");
        assert_eq!(expensive(&path, trace.statements()), Vec::<String>::new());
        assert!(trace.statements().iter().all(|sql| !sql.contains("OFFSET")), "{:#?}", trace.statements());
    }
    let trace = store.engine.trace_statements();
    store.engine.instances(Some("Running")).unwrap();
    assert_eq!(expensive(&path, trace.statements()), Vec::<String>::new());
}

/// A rare name, and instances without a stored name, are found by an index, without a sort.
#[test]
fn a_name_is_sought_together_with_unnamed_instances() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    run(&mut store, "order-1");
    let way = way(&mut store, &path, &InstanceQuery::default().orchestration_name("Pay"));
    assert_eq!(way.matches("INDEX instance_name (name=? AND rowid<?)").count(), 2, "{way}");
    assert!(way.contains("MERGE (UNION ALL)") && !way.contains("TEMP B-TREE"), "{way}");
}

/// Of a status and a name the rarer leads.
#[test]
fn a_status_of_many_leaves_the_way_to_the_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    run(&mut store, "order-1");
    crowd(&path, "done-", "Completed", 1);
    let named = |status: &str| InstanceQuery::default().orchestration_name("Order").status(status);
    assert!(way(&mut store, &path, &named("Running")).contains("instance_status"));
    assert!(way(&mut store, &path, &named("Completed")).contains("instance_name"));
}

/// Few instances of a time are found by it; many are no reason to sort them all.
#[test]
fn the_way_to_a_time_depends_on_how_many_were_created_then() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    run(&mut store, "order-1");
    crowd(&path, "old-", "Completed", 50);
    let created = |from: u64, before: u64| InstanceQuery::default().created_from(from).created_before(before);
    let few = way(&mut store, &path, &created(51, 60));
    assert!(few.contains("instance_created (created_at>? AND created_at<?)"), "{few}");
    let many = way(&mut store, &path, &created(50, 51));
    assert!(!many.contains("instance_created") && !many.contains("TEMP B-TREE"), "{many}");
    let since = way(&mut store, &path, &InstanceQuery::default().created_from(51));
    assert!(since.contains("instance_created (created_at>?)"), "{since}");
    let now = store.now.as_millis();
    assert_eq!(ids(&mut store, &created(51, now + 1)), ["order-1"]);
    assert_eq!(ids(&mut store, &created(50, 51)).len(), 1_000, "a page");
}

/// A round that changes neither name, nor status, nor parent touches no index of theirs.
#[test]
fn later_turns_leave_the_indexes_of_pages_alone() {
    let mut store = Store::in_memory();
    run(&mut store, "order-1");
    store.send(&raise("order-1", "1"));
    let claim = store.claim().unwrap();
    let trace = store.engine.trace_statements();
    let round = Round { execution_id: 1, history_delta: vec![scheduled("order-1", 3)], ..Round::default() };
    store.commit(&claim.lock_token, round).unwrap();
    let updates: Vec<_> =
        trace.statements().into_iter().filter(|sql| sql.starts_with("UPDATE instance")).collect();
    assert!(!updates.is_empty());
    for column in ["name =", "status =", "parent =", "created_at =", "known ="] {
        assert!(updates.iter().all(|sql| !sql.contains(column)), "{column} in {updates:#?}");
    }
}

/// A prefix of few instances is found by their ids; one of many is no reason to sort them all.
#[test]
fn the_way_to_a_prefix_depends_on_how_many_begin_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    run(&mut store, "order-1");
    let query = InstanceQuery::default().id_prefix("order-");
    assert!(way(&mut store, &path, &query).contains("instance_id_once (instance_id>? AND instance_id<?)"));
    crowd(&path, "order-x", "Completed", 1);
    let broad = way(&mut store, &path, &query);
    assert!(!broad.contains("TEMP B-TREE") && !broad.contains("instance_id_once"), "{broad}");
}

/// Prefixes are compared character by character: no wildcards, no folding of case.
#[test]
fn a_prefix_means_its_characters() {
    let mut store = Store::in_memory();
    for instance in ["a%b", "axb", "A%b", "a%\u{10ffff}z", "a&"] {
        run(&mut store, instance);
    }
    let prefix = |prefix: &str| InstanceQuery::default().id_prefix(prefix);
    assert_eq!(ids(&mut store, &prefix("a%")), ["a%\u{10ffff}z", "a%b"]);
    assert_eq!(ids(&mut store, &prefix("a%\u{10ffff}")), ["a%\u{10ffff}z"]);
    assert_eq!(ids(&mut store, &prefix("")).len(), 5);
    assert_eq!(ids(&mut store, &prefix("\u{10ffff}")), Vec::<String>::new());
}

/// An instance that was made by appended history alone is found by the name in it, and does not shorten a page.
#[test]
fn names_that_stand_in_history_alone_are_found() {
    let mut store = Store::in_memory();
    run(&mut store, "paid");
    for instance in ["repaired-1", "repaired-2", "repaired-3"] {
        let kind = EventKind::OrchestrationStarted {
            name: if instance == "repaired-2" { "Pay" } else { "Ship" }.to_owned(),
            version: "1.0.0".to_owned(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        let event = Event::with_event_id(1, instance, 1, None, kind);
        let events = vec![EventRow::new(&event)];
        let instance = instance.to_owned();
        store.apply(&Op::Append { instance, execution_id: 1, events, changes: Vec::new() });
    }
    let query = InstanceQuery::default().orchestration_name("Pay");
    assert_eq!(ids(&mut store, &query), ["repaired-2", "paid"]);
    let page = store.engine.select_instances(&query, None, 2).unwrap();
    assert_eq!(page.len(), 2, "those of another name do not count towards the page");
    let first = store.engine.select_instances(&query, None, 1).unwrap();
    let rest = store.engine.select_instances(&query, Some(first[0].row), 1).unwrap();
    assert_eq!(rest[0].info.instance_id, "paid");
}
