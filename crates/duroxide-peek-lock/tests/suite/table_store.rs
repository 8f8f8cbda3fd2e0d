//! A peek-lock store of ordered maps that stops working at a given call, as if its process had died.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use duroxide_peek_lock::{
    PeekLockStore, QueueItem, QueueItemId, Step, Stored, WhichQueue,
    record::{DeadLetterRecord, ExecutionRecord, InstanceRecord, Records, StoredInstance},
};
use duroxide_provider::store::{EventRow, FailureClass, StoreFailure};

/// The content of the store, which survives a crash.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) instances: BTreeMap<String, InstanceRecord>,
    pub(crate) executions: BTreeMap<(String, u64), ExecutionRecord>,
    pub(crate) events: BTreeMap<(String, u64, u64), String>,
    pub(crate) items: BTreeMap<QueueItemId, QueueItem>,
    pub(crate) dead_letters: BTreeMap<u64, DeadLetterRecord>,
    pub(crate) unfinished: Vec<Step>,
}

/// The kinds of writes, for tests that stop at one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Note,
    ClearNote,
    PutInstance,
    Append,
    PutExecution,
    Enqueue,
    PeekLock,
    Abandon,
    Ack,
    PutDeadLetter,
    RemoveDeadLetter,
    RemoveExecution,
    RemoveInstance,
}

/// When a store stops working.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Stop {
    #[default]
    Never,
    /// Before the n-th write from now, counted from 0.
    At(usize),
    /// Before the next write of this kind.
    Before(Call),
}

#[derive(Debug, Default)]
struct State {
    tables: Tables,
    stop: Stop,
    stopped: bool,
    /// Writes since the store was made or revived.
    writes: usize,
}

/// A handle to the tables. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableStore {
    state: Arc<Mutex<State>>,
    former_user_is_gone: bool,
}

impl TableStore {
    pub(crate) fn stop(&self, stop: Stop) {
        self.state().stop = stop;
    }

    /// The store as a new process opens it: the same tables, and writes work again.
    pub(crate) fn revived(&self) -> Self {
        let mut state = self.state();
        (state.stop, state.stopped) = (Stop::Never, false);
        state.writes = 0;
        self.clone()
    }

    /// The store, certain that no other process uses it.
    pub(crate) fn alone(mut self) -> Self {
        self.former_user_is_gone = true;
        self
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.state().stopped
    }

    pub(crate) fn with_tables<T>(&self, call: impl FnOnce(&mut Tables) -> T) -> T {
        call(&mut self.state().tables)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn write(&self, call: Call, write: impl FnOnce(&mut Tables)) -> Result<(), StoreFailure> {
        let mut state = self.state();
        state.stopped |= match state.stop {
            Stop::Never => false,
            Stop::At(number) => state.writes >= number,
            Stop::Before(stop) => stop == call,
        };
        if state.stopped {
            return Err(StoreFailure::new(FailureClass::Retryable, "the process has died"));
        }
        state.writes += 1;
        write(&mut state.tables);
        Ok(())
    }
}

impl Tables {
    fn records(&self) -> Records {
        Records {
            instances: self.instances.values().map(|instance| self.stored(instance)).collect(),
            dead_letters: self.dead_letters.values().cloned().collect(),
        }
    }

    fn stored(&self, record: &InstanceRecord) -> StoredInstance {
        let id = &record.row.id;
        let mut stored = StoredInstance {
            instance: record.clone(),
            executions: Vec::new(),
            messages: Vec::new(),
            activities: Vec::new(),
        };
        let executions = self.executions.iter().filter(|((instance, _), _)| instance == id);
        stored.executions = executions.map(|(key, record)| (record.clone(), self.history(key))).collect();
        for item in self.items.values().filter(|item| item.id().instance == *id) {
            match item {
                QueueItem::Message(message) => stored.messages.push(message.clone()),
                QueueItem::Activity(activity) => stored.activities.push(activity.clone()),
            }
        }
        stored
    }

    fn history(&self, (instance, execution_id): &(String, u64)) -> Vec<EventRow> {
        let of_it = |key: &(String, u64, u64)| key.0 == *instance && key.1 == *execution_id;
        let events = self.events.iter().filter(|(key, _)| of_it(key));
        events.map(|((.., event_id), data)| EventRow { event_id: *event_id, data: data.clone() }).collect()
    }

    pub(crate) fn queued(&self, queue: WhichQueue, instance: &str) -> usize {
        self.items.keys().filter(|id| id.queue == queue && id.instance == instance).count()
    }
}

impl PeekLockStore for TableStore {
    fn load(&mut self) -> Result<Stored, StoreFailure> {
        let state = self.state();
        if state.stopped {
            return Err(StoreFailure::new(FailureClass::Retryable, "the process has died"));
        }
        Ok(Stored { records: state.tables.records(), unfinished: state.tables.unfinished.clone() })
    }

    fn former_user_is_gone(&self) -> bool {
        self.former_user_is_gone
    }

    fn note_unfinished(&mut self, steps: &[Step]) -> Result<(), StoreFailure> {
        self.write(Call::Note, |tables| tables.unfinished = steps.to_vec())
    }

    fn clear_unfinished(&mut self) -> Result<(), StoreFailure> {
        self.write(Call::ClearNote, |tables| tables.unfinished.clear())
    }

    fn put_instance(&mut self, record: &InstanceRecord) -> Result<(), StoreFailure> {
        self.write(Call::PutInstance, |tables| {
            tables.instances.insert(record.row.id.clone(), record.clone());
        })
    }

    fn append(&mut self, instance: &str, execution_id: u64, events: &[EventRow]) -> Result<(), StoreFailure> {
        self.write(Call::Append, |tables| {
            for event in events {
                let key = (instance.to_owned(), execution_id, event.event_id);
                tables.events.entry(key).or_insert_with(|| event.data.clone());
            }
        })
    }

    fn put_execution(&mut self, record: &ExecutionRecord) -> Result<(), StoreFailure> {
        self.write(Call::PutExecution, |tables| {
            tables.executions.insert((record.instance.clone(), record.execution_id), record.clone());
        })
    }

    fn enqueue(&mut self, item: &QueueItem) -> Result<(), StoreFailure> {
        self.write(Call::Enqueue, |tables| drop(tables.items.insert(item.id(), item.clone())))
    }

    fn peek_lock(&mut self, item: &QueueItem) -> Result<(), StoreFailure> {
        self.write(Call::PeekLock, |tables| drop(tables.items.insert(item.id(), item.clone())))
    }

    fn abandon(&mut self, item: &QueueItem) -> Result<(), StoreFailure> {
        self.write(Call::Abandon, |tables| drop(tables.items.insert(item.id(), item.clone())))
    }

    fn ack(&mut self, item: &QueueItemId) -> Result<(), StoreFailure> {
        self.write(Call::Ack, |tables| drop(tables.items.remove(item)))
    }

    fn put_dead_letter(&mut self, record: &DeadLetterRecord) -> Result<(), StoreFailure> {
        self.write(Call::PutDeadLetter, |tables| {
            tables.dead_letters.insert(record.number, record.clone());
        })
    }

    fn remove_dead_letter(&mut self, number: u64) -> Result<(), StoreFailure> {
        self.write(Call::RemoveDeadLetter, |tables| drop(tables.dead_letters.remove(&number)))
    }

    fn remove_execution(&mut self, instance: &str, execution_id: u64) -> Result<(), StoreFailure> {
        self.write(Call::RemoveExecution, |tables| {
            tables.executions.remove(&(instance.to_owned(), execution_id));
            tables.events.retain(|key, _| !(key.0 == instance && key.1 == execution_id));
        })
    }

    fn remove_instance(&mut self, instance: &str) -> Result<(), StoreFailure> {
        self.write(Call::RemoveInstance, |tables| {
            tables.instances.remove(instance);
            tables.executions.retain(|(id, _), _| id != instance);
            tables.events.retain(|(id, ..), _| id != instance);
            tables.items.retain(|id, _| id.instance != instance);
        })
    }
}
