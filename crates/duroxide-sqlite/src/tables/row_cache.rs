//! Rows as they were written last, so that they need not be read. Most turns follow the message that wakes them by
//! milliseconds, and find everything here.
//!
//! A cached row equals the stored one. Every write of [`SqliteTables`](super::SqliteTables) goes through here or forgets
//! the row; a rollback and a commit of another connection (SQLite counts them: `data_version`) clear everything.

mod budget;

use std::{collections::HashMap, sync::Arc};

use duroxide_core::{Timestamp, WorkItem};
use duroxide_provider::{
    rules::{
        ExecutionRow, InstanceChange, InstanceRow, Loaded, NOT_HIDDEN, NewMessage, QueuedActivity,
        QueuedMessage, VISIBLE_AT_ONCE, VisibleMessages,
    },
    store::ActivityRow,
};

use self::budget::{Budget, Reservation};
use crate::db::NumberMap;

/// Cached rows of each kind: some megabytes, besides the bound for large rows.
const ROWS_MAX: usize = 8192;
/// Messages of one mailbox that are cached. If there are more, they are read.
const MESSAGES_MAX: usize = 256;

/// Cached instances and activities.
#[derive(Debug, Default)]
pub(super) struct RowCache {
    instances: NumberMap<u64, CachedInstance>,
    numbers: HashMap<String, u64>,
    activities: NumberMap<u64, CachedActivity>,
    /// Bounds the memory that the large items of all rows take.
    budget: Budget,
}

/// The cached row of an instance, and the known part of its messages and state.
#[derive(Debug)]
pub(super) struct CachedInstance {
    /// `None` while a rule works on the row.
    loaded: Option<Loaded>,
    /// All messages of its mailbox that no claim took, if they are known and visible; in the order of their arrival.
    waiting: Option<Waiting>,
    /// The messages that the last claim took.
    taken: Taken,
    /// Whether its current execution is known to have changed no key.
    kv_unchanged: bool,
    /// Whether its custom status is known never to have been set.
    custom_status_unset: bool,
}

/// Messages with their items.
#[derive(Debug, Default)]
struct Waiting {
    messages: Vec<QueuedMessage>,
    reservation: Reservation,
}

/// The messages that the last claim of an instance took and that are still in the mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Nothing,
    /// One message, at this position.
    One(Timestamp, u64),
    /// Several that were all visible at once.
    AtOnce,
    /// Anything.
    Unknown,
}

#[derive(Debug)]
struct CachedActivity {
    activity: QueuedActivity,
    /// The work item. Its claim takes the item out.
    item: Option<Arc<WorkItem>>,
    _reservation: Reservation,
}

impl RowCache {
    pub(super) fn clear(&mut self) {
        self.instances.clear();
        self.numbers.clear();
        self.activities.clear();
    }

    // ---- instances ---------------------------------------------------------------------------------------------

    /// Caches a row that was just inserted and has no messages or events yet.
    pub(super) fn inserted(&mut self, row: &InstanceRow) {
        let loaded = Loaded { row: row.clone(), execution: None };
        self.insert(CachedInstance {
            loaded: Some(loaded),
            waiting: Some(Waiting::default()),
            taken: Taken::Nothing,
            kv_unchanged: true,
            custom_status_unset: true,
        });
    }

    /// Caches a row that was just read for a rule to work on.
    pub(super) fn read(&mut self, loaded: &Loaded, custom_status_unset: bool) {
        let number = loaded.row.number;
        if self.instances.len() < ROWS_MAX {
            let taken = if loaded.row.lock.is_some() { Taken::Unknown } else { Taken::Nothing };
            let cached = CachedInstance {
                loaded: None,
                waiting: None,
                taken,
                kv_unchanged: false,
                custom_status_unset,
            };
            self.instances.insert(number, cached);
            self.numbers.insert(loaded.row.id.clone(), number);
        }
    }

    fn insert(&mut self, cached: CachedInstance) {
        if let Some(loaded) = &cached.loaded
            && self.instances.len() < ROWS_MAX
        {
            self.numbers.insert(loaded.row.id.clone(), loaded.row.number);
            self.instances.insert(loaded.row.number, cached);
        }
    }

    /// Takes a row out of the cache, for a rule to work on.
    pub(super) fn take(&mut self, number: u64) -> Option<Loaded> {
        self.instances.get_mut(&number)?.loaded.take()
    }

    /// Caches a row again that a rule has written. Rows of ended instances are dropped: few are needed again.
    pub(super) fn put_back(&mut self, loaded: Loaded) {
        let number = loaded.row.number;
        if loaded.execution.as_ref().is_some_and(ExecutionRow::has_ended) {
            return self.forget(&loaded.row);
        }
        if let Some(cached) = self.instances.get_mut(&number) {
            cached.loaded = Some(loaded);
        }
    }

    pub(super) fn instance(&self, number: u64) -> Option<&InstanceRow> {
        self.instances.get(&number)?.loaded.as_ref().map(|loaded| &loaded.row)
    }

    pub(super) fn instance_named(&self, id: &str) -> Option<&InstanceRow> {
        self.instance(*self.numbers.get(id)?)
    }

    pub(super) fn forget(&mut self, row: &InstanceRow) {
        self.instances.remove(&row.number);
        self.numbers.remove(&row.id);
    }

    pub(super) fn forget_number(&mut self, number: u64) {
        if let Some(Loaded { row, .. }) = self.instances.remove(&number).and_then(|cached| cached.loaded) {
            self.numbers.remove(&row.id);
        }
    }

    /// Some columns of an instance were written.
    pub(super) fn written(&mut self, row: &InstanceRow, change: InstanceChange) {
        let Some(cached) = self.instances.get_mut(&row.number).and_then(|cached| cached.loaded.as_mut())
        else {
            // A rule works on its own copy of the row, which differs from the stored one.
            return self.forget(row);
        };
        match change {
            InstanceChange::Readiness => {
                (cached.row.route, cached.row.readiness) = (row.route, row.readiness);
            }
            InstanceChange::Lock
            | InstanceChange::Round
            | InstanceChange::Status
            | InstanceChange::Description => self.forget(row),
        }
    }

    /// An instance that waited is ready on its route.
    pub(super) fn woken(&mut self, number: u64, ready: u64) {
        if let Some(loaded) = self.instances.get_mut(&number).and_then(|cached| cached.loaded.as_mut()) {
            loaded.row.wake(ready);
        }
    }

    // ---- mailboxes ---------------------------------------------------------------------------------------------

    pub(super) fn message_arrived(&mut self, instance: u64, message: &NewMessage<'_>) {
        let Some(cached) = self.instances.get_mut(&instance) else { return };
        let item = message.prepared.item.as_ref().filter(|_| message.due_at == VISIBLE_AT_ONCE);
        let waiting = cached.waiting.take().filter(|waiting| waiting.messages.len() < MESSAGES_MAX);
        let bytes = message.prepared.data.len();
        cached.waiting = waiting.zip(item).and_then(|(mut waiting, item)| {
            if !waiting.reservation.take(&self.budget, bytes) {
                return None;
            }
            waiting.messages.push(QueuedMessage {
                number: message.number,
                due_at: message.due_at,
                kind: message.prepared.kind,
                key: message.prepared.key.clone(),
                enqueued_at: message.enqueued_at,
                hidden_until: NOT_HIDDEN,
                attempts: 0,
                mark: None,
                data: String::new(),
                item: Some(Arc::clone(item)),
            });
            Some(waiting)
        });
    }

    /// A message was changed or deleted by other means than a turn.
    pub(super) fn mailbox_changed(&mut self, instance: u64) {
        if let Some(cached) = self.instances.get_mut(&instance) {
            cached.waiting = None;
            cached.taken = Taken::Unknown;
        }
    }

    /// The messages that a claim takes, if they are known to be all that the mailbox holds.
    pub(super) fn take_messages(&mut self, instance: u64) -> Option<VisibleMessages> {
        let cached = self.instances.get_mut(&instance)?;
        // Messages of a lock that was lost are in the mailbox too.
        let waiting = cached.waiting.take().filter(|waiting| !waiting.messages.is_empty());
        let Some(Waiting { messages, .. }) = waiting.filter(|_| cached.taken == Taken::Nothing) else {
            cached.taken = Taken::Unknown;
            return None;
        };
        cached.taken = match messages.as_slice() {
            [sole] => Taken::One(sole.due_at, sole.number),
            _ => Taken::AtOnce,
        };
        cached.waiting = Some(Waiting::default());
        Some(VisibleMessages { messages, are_all: true })
    }

    /// The messages that a claim takes were read.
    pub(super) fn messages_read(&mut self, instance: u64, visible: &VisibleMessages) {
        let Some(cached) = self.instances.get_mut(&instance) else { return };
        cached.taken = match visible.messages.as_slice() {
            [sole] if visible.are_all => Taken::One(sole.due_at, sole.number),
            messages
                if visible.are_all && messages.iter().all(|message| message.due_at == VISIBLE_AT_ONCE) =>
            {
                Taken::AtOnce
            }
            _ => Taken::Unknown,
        };
    }

    pub(super) fn taken(&self, instance: u64) -> Taken {
        self.instances.get(&instance).map_or(Taken::Unknown, |cached| cached.taken)
    }

    /// Whether a mailbox has messages besides those of a claim, if that is known.
    pub(super) fn are_left(&self, instance: u64) -> Option<bool> {
        self.instances.get(&instance)?.waiting.as_ref().map(|waiting| !waiting.messages.is_empty())
    }

    /// The messages that a claim took are deleted.
    pub(super) fn consumed(&mut self, instance: u64, are_left: bool) {
        if let Some(cached) = self.instances.get_mut(&instance) {
            cached.taken = Taken::Nothing;
            if !are_left {
                cached.waiting = Some(Waiting::default());
            }
        }
    }

    // ---- key-values and custom status --------------------------------------------------------------------------

    pub(super) fn kv_is_unchanged(&self, instance: u64) -> bool {
        self.instances.get(&instance).is_some_and(|cached| cached.kv_unchanged)
    }

    pub(super) fn kv_changed(&mut self, instance: u64) {
        if let Some(cached) = self.instances.get_mut(&instance) {
            cached.kv_unchanged = false;
        }
    }

    pub(super) fn custom_status_is_unset(&self, instance: u64) -> bool {
        self.instances.get(&instance).is_some_and(|cached| cached.custom_status_unset)
    }

    pub(super) fn custom_status_set(&mut self, instance: u64) {
        if let Some(cached) = self.instances.get_mut(&instance) {
            cached.custom_status_unset = false;
        }
    }

    // ---- activities --------------------------------------------------------------------------------------------

    /// Caches an activity, with its work item if that was just written.
    pub(super) fn put_activity(&mut self, activity: QueuedActivity, prepared: Option<&ActivityRow>) {
        if self.activities.len() >= ROWS_MAX {
            return;
        }
        let mut reservation = Reservation::default();
        let kept = prepared.filter(|prepared| reservation.take(&self.budget, prepared.data.len()));
        let item = kept.and_then(|prepared| prepared.item.clone());
        self.activities.insert(activity.number, CachedActivity { activity, item, _reservation: reservation });
    }

    /// Takes an activity out of the cache until it is written again. Most callers delete it.
    pub(super) fn take_activity(&mut self, number: u64) -> Option<QueuedActivity> {
        self.activities.remove(&number).map(|cached| cached.activity)
    }

    /// Like `take_activity`, with the work item. `None` if the item is not cached.
    pub(super) fn take_activity_with_item(&mut self, number: u64) -> Option<(QueuedActivity, Arc<WorkItem>)> {
        self.activities.get(&number)?.item.as_ref()?;
        let cached = self.activities.remove(&number)?;
        Some((cached.activity, cached.item?))
    }

    /// Caches a written activity without its work item: a claim took the item, or will read it again.
    pub(super) fn activity_written(&mut self, activity: &QueuedActivity) {
        self.put_activity(activity.clone(), None);
    }

    pub(super) fn activity_woken(&mut self, number: u64) {
        if let Some(cached) = self.activities.get_mut(&number) {
            cached.activity.waits_until = None;
        }
    }

    pub(super) fn forget_activity(&mut self, number: u64) {
        self.activities.remove(&number);
    }

    pub(super) fn forget_activities(&mut self) {
        self.activities.clear();
    }
}
