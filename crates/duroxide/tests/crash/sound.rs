//! Checks that must hold for a store after every kill.

use std::collections::BTreeMap;

use duroxide::{Event, EventKind};
use duroxide_provider::{
    invariant,
    store::{ExecutionSnapshot, InstanceSnapshot, StoreSnapshot},
};

/// I01 to I08, I10, I12, I16, I17, I19: everything that a snapshot shows.
#[track_caller]
pub fn assert_sound(snapshot: &StoreSnapshot) {
    let violations = invariant::check(snapshot);
    assert!(violations.is_empty(), "{violations:#?}");
    assert!(snapshot.dead_letters.is_empty(), "{:#?}", snapshot.dead_letters);
}

/// Checks a store whose instances have all ended: no row is queued or locked, executions are 1 to n, each but the last
/// continued as new, and every scheduled activity has exactly one completion.
#[track_caller]
pub fn assert_finished(snapshot: &StoreSnapshot) {
    assert_sound(snapshot);
    for instance in &snapshot.instances {
        let name = &instance.instance;
        assert!(instance.messages.is_empty(), "{name}: {:?}", instance.messages);
        assert!(instance.activities.is_empty() && instance.lock.is_none(), "{name}");
        let numbers: Vec<u64> = instance.executions.iter().map(|execution| execution.execution_id).collect();
        let expected: Vec<u64> = (1..=instance.executions.len() as u64).collect();
        assert_eq!(numbers, expected, "I16: {name}");
        let (last, earlier) = instance.executions.split_last().expect("an instance has an execution");
        assert_eq!(last.status, "Completed", "{name}: {:?}", last.output);
        assert!(earlier.iter().all(|execution| execution.status == "ContinuedAsNew"), "{name}");
        for execution in &instance.executions {
            assert_completed_once(name, &events(execution));
        }
    }
}

#[track_caller]
fn assert_completed_once(instance: &str, events: &[Event]) {
    let mut completions: BTreeMap<u64, u32> = BTreeMap::new();
    for event in events {
        match event.kind {
            EventKind::ActivityScheduled { .. } => {
                completions.entry(event.event_id).or_default();
            }
            EventKind::ActivityCompleted { .. } => {
                *completions.entry(event.source_event_id.unwrap()).or_default() += 1;
            }
            _ => {}
        }
    }
    assert!(completions.values().all(|count| *count == 1), "I05: {instance}: {completions:?}");
}

pub fn events(execution: &ExecutionSnapshot) -> Vec<Event> {
    let decode = |data: &str| serde_json::from_str(data).expect("stored events can be read");
    execution.events.iter().map(|row| decode(&row.data)).collect()
}

/// The instance of this name.
pub fn instance<'a>(snapshot: &'a StoreSnapshot, name: &str) -> &'a InstanceSnapshot {
    snapshot.instances.iter().find(|instance| instance.instance == name).expect("the instance is there")
}
