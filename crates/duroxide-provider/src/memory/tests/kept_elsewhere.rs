//! A memory engine whose rows are kept elsewhere, change by change, and which is restored from them after every commit.
//! A row that is missing in a change is lost then, and a story or the comparison fails.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{
    memory::{
        MemoryEngine, MemoryTables,
        record::{
            ActivityRecord, Changes, DeadLetterRecord, ExecutionRecord, InstanceRecord, MessageRecord,
            Records, StoredInstance,
        },
    },
    rules::Rules,
    store::{Batch, Done, EventRow, Fault, StoreFailure, TransactionSteps},
    testing::{EngineLayer, ModelEngine, StepLayer, Subject, compare},
};

#[derive(Default)]
struct Rows {
    instances: BTreeMap<String, InstanceRecord>,
    executions: BTreeMap<(String, u64), ExecutionRecord>,
    events: BTreeMap<(String, u64), Vec<EventRow>>,
    messages: BTreeMap<(String, u64), MessageRecord>,
    activities: BTreeMap<(String, u64), ActivityRecord>,
    dead_letters: BTreeMap<u64, DeadLetterRecord>,
}

impl Rows {
    fn take(&mut self, changes: Changes) {
        for id in changes.removed_instances {
            self.instances.remove(&id);
            self.executions.retain(|(instance, _), _| *instance != id);
            self.events.retain(|(instance, _), _| *instance != id);
            self.messages.retain(|(instance, _), _| *instance != id);
            self.activities.retain(|(instance, _), _| *instance != id);
        }
        let instances = changes.added_instances.into_iter().chain(changes.changed_instances);
        self.instances.extend(instances.map(|record| (record.row.id.clone(), record)));
        for row in changes.executions {
            self.executions.insert((row.instance.clone(), row.execution_id), row);
        }
        for (instance, execution_id, events) in changes.appended {
            self.events.entry((instance, execution_id)).or_default().extend(events);
        }
        for execution in changes.removed_executions {
            self.executions.remove(&execution);
            self.events.remove(&execution);
        }
        let (messages, activities) = (changes.messages, changes.activities);
        for row in messages.added.into_iter().chain(messages.changed) {
            self.messages.insert((row.instance.clone(), row.row.number), row);
        }
        for row in activities.added.into_iter().chain(activities.changed) {
            self.activities.insert((row.activity.instance.clone(), row.row.number), row);
        }
        messages.removed.iter().for_each(|id| drop(self.messages.remove(id)));
        activities.removed.iter().for_each(|id| drop(self.activities.remove(id)));
        self.dead_letters.extend(changes.added_dead_letters.into_iter().map(|row| (row.number, row)));
        changes.removed_dead_letters.iter().for_each(|number| drop(self.dead_letters.remove(number)));
    }

    fn records(&self) -> Records {
        let instances = self.instances.values().map(|instance| StoredInstance {
            instance: instance.clone(),
            executions: of(&self.executions, &instance.row.id)
                .map(|(key, execution)| {
                    (execution.clone(), self.events.get(key).cloned().unwrap_or_default())
                })
                .collect(),
            messages: of(&self.messages, &instance.row.id).map(|(_, row)| row.clone()).collect(),
            activities: of(&self.activities, &instance.row.id).map(|(_, row)| row.clone()).collect(),
        });
        Records {
            instances: instances.collect(),
            dead_letters: self.dead_letters.values().cloned().collect(),
        }
    }
}

fn of<'a, R>(
    rows: &'a BTreeMap<(String, u64), R>,
    instance: &'a str,
) -> impl Iterator<Item = (&'a (String, u64), &'a R)> {
    rows.iter().filter(move |((id, _), _)| id == instance)
}

#[derive(Default)]
struct KeptElsewhere {
    engine: MemoryEngine,
    rows: Rows,
}

impl EngineLayer for KeptElsewhere {
    type Engine = MemoryEngine;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut MemoryEngine) -> T) -> T {
        call(&mut self.engine)
    }

    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.transact_in_steps(batch)
    }
}

impl StepLayer for KeptElsewhere {
    type Steps = Rules<MemoryTables>;

    fn with_steps<T>(&mut self, call: impl FnOnce(&mut Self::Steps) -> T) -> T {
        call(self.engine.rules())
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        self.rows.take(self.engine.take_changes());
        self.engine.rules().commit()?;
        self.engine.replace(self.rows.records())
    }
}

crate::engine_stories!(KeptElsewhere::default());

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_engine_restored_after_every_commit_does_the_same(
        numbers in prop::collection::vec(any::<u64>(), 0..120),
    ) {
        let (model, other) = (ModelEngine::default(), KeptElsewhere::default());
        compare(&mut Subject::new(model), &mut Subject::new(other), &numbers);
    }
}
