//! Messages to instances.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Bound, RangeInclusive},
    sync::Arc,
};

use duroxide_core::Timestamp;

use super::table::{Index, Table, refile};
use crate::{
    rules::{ClaimBound, Extent, NOT_HIDDEN, NewMessage, QueuedMessage, VisibleMessages},
    store::{CANCELLATION, MessageKind, calling_parent},
};

/// The position of a message in its mailbox.
type Position = (Timestamp, u64);
/// Instance and position.
pub(in crate::memory) type MessageKey = (u64, Position);

pub(in crate::memory) type Mailboxes = Table<MessageKey, Message, MailboxIndex>;

/// A message in a mailbox.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::memory) struct Message {
    /// The message without its JSON.
    row: QueuedMessage,
    data: Arc<str>,
}

impl Message {
    pub(in crate::memory) fn new(mut row: QueuedMessage) -> Self {
        let data = std::mem::take(&mut row.data).into();
        Self { row, data }
    }

    fn arrived(new: &NewMessage<'_>) -> Self {
        let prepared = new.prepared;
        let row = QueuedMessage {
            number: new.number,
            due_at: new.due_at,
            kind: prepared.kind,
            key: prepared.key.clone(),
            enqueued_at: new.enqueued_at,
            hidden_until: NOT_HIDDEN,
            attempts: 0,
            mark: None,
            data: String::new(),
            item: prepared.small_item(),
        };
        Self { row, data: prepared.data.as_str().into() }
    }

    pub(in crate::memory) fn row(&self) -> &QueuedMessage {
        &self.row
    }

    pub(in crate::memory) fn data(&self) -> &str {
        &self.data
    }

    /// The message with its JSON.
    pub(in crate::memory) fn whole(&self) -> QueuedMessage {
        QueuedMessage { data: self.data.to_string(), ..self.row.clone() }
    }

    /// The message, to be decoded: with its JSON only if that is needed.
    fn readable(&self) -> QueuedMessage {
        if self.row.item.is_some() { self.row.clone() } else { self.whole() }
    }
}

/// Every entry begins with the instance.
#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct MailboxIndex {
    keys: BTreeMap<(u64, String), Position>,
    starts: BTreeSet<(u64, MessageKind, Position)>,
    /// Messages that are or were hidden, by the end of that.
    hidden: BTreeSet<(u64, Timestamp, Position)>,
    /// The queue messages among them, with their number.
    hidden_queue: BTreeSet<(u64, Timestamp, u64)>,
    ages: BTreeSet<(u64, Timestamp, Position)>,
    marked: BTreeSet<(u64, u64, Position)>,
    attempted: BTreeSet<MessageKey>,
    /// Messages that are no queue messages.
    others: BTreeSet<MessageKey>,
    /// How many messages clients have sent.
    from_clients: BTreeMap<u64, u64>,
    /// Child starts: parent, instance, key.
    calls: BTreeSet<(String, u64, String)>,
}

impl Index<MessageKey, Message> for MailboxIndex {
    fn file(&mut self, key: &MessageKey, before: Option<&Message>, after: Option<&Message>) {
        let (instance, position) = *key;
        // Keys never change.
        match (before, after) {
            (None, Some(new)) => self.file_new(instance, new),
            (Some(gone), None) => self.unfile(instance, gone),
            _ => {}
        }
        let start =
            |message: &Message| message.row.is_start().then_some((instance, message.row.kind, position));
        refile(&mut self.starts, before.and_then(start), after.and_then(start));
        let hidden_until =
            |message: &Message| Some(message.row.hidden_until).filter(|until| *until > NOT_HIDDEN);
        let hidden = |message: &Message| Some((instance, hidden_until(message)?, position));
        refile(&mut self.hidden, before.and_then(hidden), after.and_then(hidden));
        let hidden_queue = |message: &Message| {
            let until = hidden_until(message).filter(|_| message.row.kind == MessageKind::Queue)?;
            Some((instance, until, message.row.number))
        };
        refile(&mut self.hidden_queue, before.and_then(hidden_queue), after.and_then(hidden_queue));
        let age = |message: &Message| (instance, message.row.waits_since(), position);
        refile(&mut self.ages, before.map(age), after.map(age));
        let mark = |message: &Message| Some((instance, message.row.mark?, position));
        refile(&mut self.marked, before.and_then(mark), after.and_then(mark));
        let attempted = |message: &Message| (message.row.attempts > 0).then_some(*key);
        refile(&mut self.attempted, before.and_then(attempted), after.and_then(attempted));
        let other = |message: &Message| (message.row.kind != MessageKind::Queue).then_some(*key);
        refile(&mut self.others, before.and_then(other), after.and_then(other));
    }
}

impl MailboxIndex {
    fn file_new(&mut self, instance: u64, message: &Message) {
        if message.row.is_from_client() {
            *self.from_clients.entry(instance).or_default() += 1;
        }
        if let Some(key) = &message.row.key {
            self.keys.insert((instance, key.clone()), message.row.position());
            self.calls.extend(calling_parent(key).map(|parent| (parent.to_owned(), instance, key.clone())));
        }
    }

    fn unfile(&mut self, instance: u64, message: &Message) {
        if message.row.is_from_client()
            && let Some(count) = self.from_clients.get_mut(&instance)
        {
            *count -= 1;
            if *count == 0 {
                self.from_clients.remove(&instance);
            }
        }
        if let Some(key) = &message.row.key {
            self.keys.remove(&(instance, key.clone()));
            if let Some(parent) = calling_parent(key) {
                self.calls.remove(&(parent.to_owned(), instance, key.clone()));
            }
        }
    }
}

impl Mailboxes {
    /// Inserts a message, unless one with its key is in the mailbox.
    pub(in crate::memory) fn insert(&mut self, instance: u64, new: &NewMessage<'_>) -> bool {
        let key = new.prepared.key.as_ref();
        if key.is_some_and(|key| self.index().keys.contains_key(&(instance, key.clone()))) {
            return false;
        }
        self.put((instance, (new.due_at, new.number)), Message::arrived(new));
        true
    }

    pub(in crate::memory) fn of(&self, instance: u64) -> impl Iterator<Item = &Message> {
        self.range(all(instance)).map(|(_, message)| message)
    }

    /// Messages that have become due by this time, hidden or not, by position.
    fn due(&self, instance: u64, now: Timestamp) -> impl Iterator<Item = &Message> {
        let due = (instance, FIRST)..=(instance, (now, u64::MAX));
        self.range(due).map(|(_, message)| message)
    }

    /// The number of the oldest hidden queue message: younger ones wait behind it.
    fn oldest_hidden(&self, instance: u64, now: Timestamp) -> Option<u64> {
        hidden_after(&self.index().hidden_queue, instance, now, u64::MAX).map(|(.., number)| *number).min()
    }

    /// Messages that a claim may take, and whether a queue message waits behind a hidden one.
    pub(in crate::memory) fn visible(
        &self,
        instance: u64,
        now: Timestamp,
        bound: ClaimBound,
    ) -> VisibleMessages {
        let hidden = self.oldest_hidden(instance, now);
        let mut visible = VisibleMessages { messages: Vec::new(), are_all: true };
        let mut bytes = 0_usize;
        for message in self.due(instance, now).filter(|message| message.row.is_visible(now)) {
            if message.row.waits_behind(hidden) {
                visible.are_all = false;
                continue;
            }
            bytes = bytes.saturating_add(message.data.len());
            if !bound.admits(visible.messages.len(), bytes) {
                visible.are_all = false;
                break;
            }
            visible.messages.push(message.readable());
        }
        visible
    }

    pub(in crate::memory) fn has_visible(&self, instance: u64, now: Timestamp) -> bool {
        let mut due = self.due(instance, now).filter(|message| message.row.is_visible(now)).peekable();
        // Nothing holds anything but queue messages back.
        let is_queue = |message: &&Message| message.row.kind == MessageKind::Queue;
        if due.peek().is_none_or(|first| !is_queue(first)) {
            return due.peek().is_some();
        }
        let hidden = self.oldest_hidden(instance, now);
        due.any(|message| !message.row.waits_behind(hidden))
    }

    pub(in crate::memory) fn first_visible_start(
        &self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Option<QueuedMessage> {
        let starts = self.index().starts.range((instance, kind, FIRST)..=(instance, kind, (now, u64::MAX)));
        let mut messages = starts.filter_map(|(_, _, position)| self.get(&(instance, *position)));
        messages.find(|message| message.row.is_visible(now)).map(Message::readable)
    }

    /// The first start or `ContinueAsNew`, visible or not.
    pub(in crate::memory) fn first_start(&self, instance: u64) -> Option<&Message> {
        let starts = self.index().starts.range((instance, MessageKind::Start, FIRST)..);
        let (of, _, position) = starts.into_iter().next()?;
        self.get(&(*of, *position)).filter(|_| *of == instance)
    }

    pub(in crate::memory) fn has_other_than_queue(&self, instance: u64) -> bool {
        self.index().others.range(all(instance)).next().is_some()
    }

    pub(in crate::memory) fn has_attempted(&self, instance: u64) -> bool {
        self.index().attempted.range(all(instance)).next().is_some()
    }

    pub(in crate::memory) fn has_hidden_queue(&self, instance: u64, now: Timestamp) -> bool {
        hidden_after(&self.index().hidden_queue, instance, now, u64::MAX).next().is_some()
    }

    /// The earliest time after now at which a message becomes due or is no longer hidden.
    pub(in crate::memory) fn next_visible(&self, instance: u64, now: Timestamp) -> Option<Timestamp> {
        let later = (Bound::Excluded((instance, (now, u64::MAX))), Bound::Included((instance, LAST)));
        let due = self.range(later).next().map(|(_, message)| message.row.due_at);
        let shown =
            hidden_after(&self.index().hidden, instance, now, LAST).next().map(|(_, until, _)| *until);
        due.into_iter().chain(shown).min()
    }

    /// Messages that wait since this time or longer, longest first.
    pub(in crate::memory) fn waiting_since(
        &self,
        instance: u64,
        time: Timestamp,
    ) -> impl Iterator<Item = &Message> {
        let ages = self.index().ages.range((instance, Timestamp::ZERO, FIRST)..=(instance, time, LAST));
        ages.filter_map(move |(_, _, position)| self.get(&(instance, *position)))
    }

    /// The messages that a lock holds.
    pub(in crate::memory) fn held_by(&self, instance: u64, extent: &Extent) -> Vec<MessageKey> {
        match *extent {
            Extent::Visible { at, .. } => {
                let held = self.due(instance, at).filter(|message| extent.holds(&message.row));
                held.map(|message| (instance, message.row.position())).collect()
            }
            Extent::Marked { mark } => {
                let marked = self.index().marked.range((instance, mark, FIRST)..=(instance, mark, LAST));
                marked.map(|(_, _, position)| (instance, *position)).collect()
            }
        }
    }

    /// Changes the messages that a lock holds.
    pub(in crate::memory) fn change_held(
        &mut self,
        instance: u64,
        extent: &Extent,
        change: impl Fn(&mut QueuedMessage),
    ) {
        for key in self.held_by(instance, extent) {
            self.change(&key, &change);
        }
    }

    pub(in crate::memory) fn change(&mut self, key: &MessageKey, change: impl FnOnce(&mut QueuedMessage)) {
        self.update(key, |message| change(&mut message.row));
    }

    pub(in crate::memory) fn remove_by_key(&mut self, instance: u64, key: &str) -> bool {
        let position = self.index().keys.get(&(instance, key.to_owned())).copied();
        position.is_some_and(|position| self.remove(&(instance, position)))
    }

    /// The child starts that carry out calls of this parent: instance and key.
    pub(in crate::memory) fn calls_of(&self, parent: &str) -> Vec<(u64, String)> {
        let calls = self.index().calls.range((parent.to_owned(), 0, String::new())..);
        let of_parent = calls.take_while(|(of, ..)| of == parent);
        of_parent.map(|(_, instance, key)| (*instance, key.clone())).collect()
    }

    pub(in crate::memory) fn sent_by_clients(&self, instance: u64) -> u64 {
        self.index().from_clients.get(&instance).copied().unwrap_or_default()
    }

    pub(in crate::memory) fn holds_cancellation(&self, instance: u64) -> bool {
        self.of(instance).any(|message| message.data.starts_with(CANCELLATION))
    }
}

const FIRST: Position = (Timestamp::ZERO, 0);
const LAST: Position = (Timestamp::MAX, u64::MAX);

pub(in crate::memory) fn all(instance: u64) -> RangeInclusive<MessageKey> {
    (instance, FIRST)..=(instance, LAST)
}

/// Entries of an instance whose time comes after now. No entry is higher than `last` at any time.
fn hidden_after<T: Ord + Copy>(
    entries: &BTreeSet<(u64, Timestamp, T)>,
    instance: u64,
    now: Timestamp,
    last: T,
) -> impl Iterator<Item = &(u64, Timestamp, T)> {
    let after = Bound::Excluded((instance, now, last));
    entries.range((after, Bound::Included((instance, Timestamp::MAX, last))))
}
