//! 19: a step of a delete or a prune removes a bounded number of rows of many instances by one statement, in their order.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "this is a test")]

#[path = "../fixture/mod.rs"]
mod fixture;

use std::collections::VecDeque;

use duroxide_provider::{
    DeleteInstanceResult, InstanceFilter, PruneOptions, invariant,
    store::{
        Answer, EventRow, InstanceSnapshot, Op, StoreReader as _, Unfinished,
        bounds::{REMOVED_BYTES_MAX, REMOVED_ROWS_MAX},
    },
    testing::{Turn, items},
};
use fixture::{Node, commit, fresh_options, sql::Admin, start};
use tokio::runtime::Runtime;

/// A node, and the rows of its store.
struct Store {
    node: Node,
    admin: Admin,
    runtime: Runtime,
    schema: String,
}

impl Store {
    fn open() -> Option<Self> {
        let server = postgres_server::server()?;
        let options = fresh_options(server);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let admin = runtime.block_on(Admin::connect(server));
        let schema = options.schema.to_string();
        Some(Self { node: Node::open_in_virtual_time(&options, 1), admin, runtime, schema })
    }

    fn execute(&self, sql: &str) {
        self.runtime.block_on(self.admin.run(&sql.replace("{s}", &self.schema)));
    }

    fn numbers(&self, sql: &str) -> Vec<i64> {
        let sql = sql.replace("{s}", &self.schema);
        let rows = self.runtime.block_on(self.admin.client().query(&sql, &[])).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// A sum over all rows that are removed in steps.
    fn sum(&self, of: &str) -> usize {
        let tables = ["history", "execution", "message", "kv", "kv_change"];
        let sums = tables.map(|table| {
            let of = if table == "history" || of == "1" { of } else { "0" };
            self.numbers(&format!("SELECT coalesce(sum({of}), 0)::bigint FROM {{s}}.{table}"))[0]
        });
        usize::try_from(sums.iter().sum::<i64>()).unwrap()
    }

    fn rows(&self) -> usize {
        self.sum("1")
    }

    fn append(&mut self, instance: &str, execution_id: u64, events: usize, bytes: usize) {
        let row = |event_id| EventRow { event_id, data: "x".repeat(bytes) };
        let events = (1..=events as u64).map(row).collect();
        let instance = instance.to_owned();
        self.node.run(vec![Op::Append { instance, execution_id, events, changes: Vec::new() }]);
    }

    /// Applies an operation, which must remove no more rows than a step may. Returns how many it has removed.
    fn step(&mut self, op: Op) -> (Answer, usize) {
        let before = self.rows();
        let answer = self.node.apply(op).unwrap();
        let removed = before - self.rows();
        assert!(removed <= REMOVED_ROWS_MAX, "a step removed {removed} rows");
        (answer, removed)
    }

    /// Carries out a delete in steps. Returns its counts, and the number of steps.
    fn delete(&mut self, op: Op) -> (DeleteInstanceResult, usize) {
        let (mut total, mut steps, mut next) = (DeleteInstanceResult::default(), 0, VecDeque::from([op]));
        while let Some(op) = next.pop_front() {
            let (result, Unfinished { rows, instances }) = deleted(self.step(op).0);
            steps += 1;
            total.instances_deleted += result.instances_deleted;
            total.executions_deleted += result.executions_deleted;
            total.events_deleted += result.events_deleted;
            total.queue_messages_deleted += result.queue_messages_deleted;
            next.extend(rows.map(|task| Op::RemoveRows { task }));
            if !instances.is_empty() {
                let filter = InstanceFilter { instance_ids: Some(instances), ..InstanceFilter::default() };
                next.push_back(Op::DeleteBulk(filter));
            }
        }
        (total, steps)
    }
}

fn deleted(answer: Answer) -> (DeleteInstanceResult, Unfinished) {
    match answer {
        Answer::Deleted(result) => (result, Unfinished::default()),
        Answer::DeletedPart(result, unfinished) => (result, unfinished),
        other => panic!("unexpected answer {other:?}"),
    }
}

fn by_force(ids: &[&str]) -> Op {
    Op::DeleteInstances { ids: ids.iter().map(|id| (*id).to_owned()).collect(), force: true }
}

/// 19.1: instances before the first unfinished one lose all their rows, and those behind it lose none.
#[test]
fn a_step_removes_rows_of_one_instance_after_the_other() {
    let Some(mut store) = Store::open() else { return };
    for id in ["a", "b", "c"] {
        store.append(id, 1, 200, 20);
        store.node.run(vec![fixture::send(items::raise(id, "unread"))]);
    }
    let numbers = store.numbers("SELECT number FROM {s}.instance ORDER BY id");
    let (answer, removed) = store.step(by_force(&["a", "b", "c"]));
    let (first, unfinished) = deleted(answer);
    assert_eq!(first.instances_deleted, 3, "all at once");
    // Each visited instance counts as a row.
    assert_eq!(removed, REMOVED_ROWS_MAX - 2);
    let left = |instance: &i64| {
        store.numbers(&format!("SELECT count(*) FROM {{s}}.history WHERE instance = {instance}"))[0]
    };
    let events: Vec<i64> = numbers.iter().map(left).collect();
    assert_eq!((events[0], events[2]), (0, 200), "{events:?}");
    assert!(events[1] > 0 && events[1] < 200, "{events:?}");
    assert!(store.node.engine.snapshot().unwrap().instances.is_empty());
    let (rest, steps) = store.delete(Op::RemoveRows { task: unfinished.rows.unwrap() });
    assert_eq!(steps, 2);
    assert_eq!(first.events_deleted + rest.events_deleted, 600);
    assert_eq!(first.executions_deleted + rest.executions_deleted, 3);
    assert_eq!(first.queue_messages_deleted + rest.queue_messages_deleted, 3);
    assert_eq!(store.rows(), 0);
}

/// 19: large rows are removed few at a time, and one row always is.
#[test]
fn a_step_is_bounded_in_bytes() {
    let Some(mut store) = Store::open() else { return };
    store.append("a", 1, 3, 1 << 20);
    store.append("b", 1, 7, 1 << 20);
    store.append("c", 1, 1, 2 * REMOVED_BYTES_MAX);
    store.append("d", 1, 1, 20);
    let bytes = |store: &Store| store.sum("octet_length(data)");
    let mut before = bytes(&store);
    let (mut next, mut steps) = (Some(by_force(&["a", "b", "c", "d"])), Vec::new());
    while let Some(op) = next {
        let (_, unfinished) = deleted(store.step(op).0);
        let after = bytes(&store);
        steps.push((before - after) >> 20);
        before = after;
        next = unfinished.rows.map(|task| Op::RemoveRows { task });
    }
    assert_eq!(steps, [4, 4, 2 + 8, 0]);
    assert_eq!(store.rows(), 0);
}

/// 19.2: a bulk delete stops between two trees. Those that the step did not reach are there.
#[test]
fn a_bulk_delete_stops_between_two_trees_and_goes_on() {
    let Some(mut store) = Store::open() else { return };
    let ids: Vec<String> = (0..20).map(|n| format!("order-{n:02}")).collect();
    for id in &ids {
        store.node.run(vec![start(id)]);
        let claim = store.node.claim(1).0.remove(0);
        store.node.run(vec![commit(
            &claim,
            Turn::first(id).child(&format!("of-{id}")).set("k", "v").complete("done"),
        )]);
        let child = store.node.claim(1).0.remove(0);
        let turn = Turn::first_of_child(&child.instance, id, 1, 2).complete("done");
        store.node.run(vec![commit(&child, turn)]);
        store.append(id, 2, 40, 20);
    }
    store.execute(
        "UPDATE {s}.execution SET status = 'Completed'; UPDATE {s}.instance SET status = 'Completed'",
    );
    let last = ids.last().unwrap();
    store.node.run(vec![fixture::send(items::raise(last, "unread"))]);
    let before = store.node.engine.snapshot().unwrap().instances;
    let batch = store.node.batch(vec![Op::DeleteBulk(InstanceFilter::default())], 1, 0);
    let mut done = store.node.transact(&batch).0;
    let (first, unfinished) = deleted(done.answers.remove(0).unwrap());
    let claimed = fixture::claims(done);
    assert_eq!((&claimed[0].instance, claimed[0].messages.len()), (last, 1), "a tree that was not reached");
    let token = claimed[0].lock_token.clone();
    store.node.run(vec![Op::AbandonInstance { token, delay: None, ignore_attempt: true }]);
    let reached = ids.len() - unfinished.instances.len();
    assert!((5..=7).contains(&reached), "{reached} trees fit into a step");
    assert_eq!(first.instances_deleted, 2 * reached as u64);
    let there = store.node.engine.snapshot().unwrap().instances;
    assert_eq!(there.len(), 2 * (ids.len() - reached));
    let is_same = |row: &InstanceSnapshot| {
        before.iter().any(|before| before.instance == row.instance && before.executions == row.executions)
    };
    assert!(there.iter().all(is_same), "no row of them was removed");
    let task = unfinished.rows.map(|task| store.delete(Op::RemoveRows { task }).0).unwrap_or_default();
    let rest = InstanceFilter { instance_ids: Some(unfinished.instances), ..InstanceFilter::default() };
    let (second, steps) = store.delete(Op::DeleteBulk(rest));
    assert!(steps >= 3, "{steps} steps");
    assert_eq!(first.instances_deleted + second.instances_deleted, 40);
    let events = first.events_deleted + task.events_deleted + second.events_deleted;
    assert_eq!(events, 20 * (4 + 40 + 2));
    assert_eq!(store.rows(), 0);
}

/// 19.3: of each instance the events of old executions are removed, and those of the others stay.
#[test]
fn a_prune_removes_the_events_of_old_executions_of_many_instances() {
    let Some(mut store) = Store::open() else { return };
    for id in ["a", "b", "c"] {
        for execution in 1..=4 {
            store.append(id, execution, 30, 20);
        }
    }
    store.execute("UPDATE {s}.execution SET status = 'Completed'");
    let options = PruneOptions { keep_last: Some(2), ..PruneOptions::default() };
    let op = Op::PruneBulk { filter: InstanceFilter::default(), options: options.clone() };
    let (answer, _) = store.step(op);
    assert!(
        matches!(&answer, Answer::Pruned(pruned) if (pruned.executions_deleted, pruned.events_deleted) == (6, 180)),
        "{answer:?}"
    );
    for id in ["a", "b", "c"] {
        assert_eq!(store.node.engine.executions(id).unwrap(), [3, 4]);
    }
    // In one batch with an operation that makes another execution old.
    let prune = |id: &str| Op::Prune { instance: id.to_owned(), options: options.clone() };
    let events = vec![EventRow { event_id: 1, data: "{}".to_owned() }];
    let append = Op::Append { instance: "b".to_owned(), execution_id: 5, events, changes: Vec::new() };
    let done = store.node.run(vec![append, prune("a"), prune("b"), prune("b")]).0;
    let pruned = done.answers.iter().skip(1).map(|answer| match answer {
        Ok(Answer::Pruned(pruned)) => pruned.executions_deleted,
        other => panic!("unexpected answer {other:?}"),
    });
    assert_eq!(pruned.collect::<Vec<_>>(), [0, 1, 0]);
}

/// 19.1: what one operation of a batch changes is found by the next.
#[test]
fn operations_of_a_batch_delete_what_others_have_made() {
    let Some(mut store) = Store::open() else { return };
    store.node.run(vec![start("p"), start("q")]);
    let mut claims = store.node.claim(2).0;
    claims.sort_by(|a, b| a.instance.cmp(&b.instance));
    store.node.run(vec![commit(&claims[0], Turn::first("p").child("c"))]);
    let child = store.node.claim(1).0.remove(0);
    let tree = |id: &str| Op::DeleteTree { instance: id.to_owned(), force: true };
    // The call of p becomes a child, and q makes a call and queues an activity, in the batch that deletes both.
    let (done, _) = store.node.run(vec![
        commit(&child, Turn::first_of_child(&child.instance, "p", 1, 2)),
        commit(&claims[1], Turn::first("q").activity().child("d")),
        tree("p"),
        tree("q"),
        start("q"),
    ]);
    let counts = done.answers.into_iter().skip(2).take(2).map(|answer| {
        let (result, _) = deleted(answer.unwrap());
        (result.instances_deleted, result.events_deleted, result.queue_messages_deleted)
    });
    assert_eq!(counts.collect::<Vec<_>>(), [(2, 3, 0), (1, 3, 2)]);
    let there = store.node.engine.snapshot().unwrap();
    assert_eq!(there.instances.len(), 1);
    assert_eq!((there.instances[0].instance.as_str(), there.instances[0].messages.len()), ("q", 1));
    assert!(there.instances[0].activities.is_empty());
    let violations = invariant::check(&there);
    assert!(violations.is_empty(), "{violations:#?}");
}
