//! Listing many instances: which ones, and what it costs.

use duroxide_core::{Event, EventKind};
use duroxide_provider::{
    InstanceQuery,
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

/// 23.3: a page is found by seeks from its cursor on, not by a sort of all instances.
#[test]
fn pages_are_found_through_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    (0..3).for_each(|n| run(&mut store, &format!("order-{n}")));
    let trace = store.engine.trace_statements().unwrap();
    let all = InstanceQuery::default;
    for query in [all(), all().status("Running"), all().parent("order-1"), all().orchestration_name("Pay")] {
        store.engine.select_instances(&query, Some(1_000), 2).unwrap();
    }
    store.engine.instances(Some("Running")).unwrap();
    assert_eq!(expensive(&path, trace.statements()), Vec::<String>::new());
    assert!(trace.statements().iter().all(|sql| !sql.contains("OFFSET")), "{:#?}", trace.statements());
}

/// A prefix of few instances is found by their ids; one of many is no reason to sort them all.
#[test]
fn the_way_to_a_prefix_depends_on_how_many_begin_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = Store::file(&path);
    run(&mut store, "order-1");
    let conn = Connection::open(&path).unwrap();
    let way = |store: &mut Store| {
        let trace = store.engine.trace_statements().unwrap();
        store.engine.select_instances(&InstanceQuery::default().id_prefix("order-"), None, 2).unwrap();
        let statements = trace.statements();
        plan(&conn, statements.iter().rfind(|sql| sql.contains("ORDER BY instance.id DESC")).unwrap())
            .join("; ")
    };
    assert!(way(&mut store).contains("instance_id_once (instance_id>? AND instance_id<?)"));

    conn.execute_batch(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1001)
        INSERT INTO instance (id, instance_id, known, created_at, updated_at)
            SELECT 1000000 + n, 'order-x' || n, 1, 0, 0 FROM n",
    )
    .unwrap();
    let broad = way(&mut store);
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
