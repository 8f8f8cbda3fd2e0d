use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use duroxide_core::Timestamp;

use super::{
    record::{MessageRecord, RowChanges},
    touched::{Touch, Touched},
};
use crate::store::{
    Arrival, CANCELLATION, MessageKind, MessageRow, MessageSnapshot, StartTarget, Visibility,
    bounds::{CLAIM_BYTES_MAX, CLAIM_MESSAGES_MAX},
    sort_for_delivery,
};

/// The position of a message in its mailbox: by due time, then by number. Immediate messages are due at 0, so that a
/// clock that was set back hides none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    due_at_ms: u64,
    arrival: u64,
}

/// One queued message.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) kind: MessageKind,
    pub(super) key: Option<String>,
    pub(super) start: Option<StartTarget>,
    pub(super) data: String,
    pub(super) attempt_count: u32,
    enqueued_at: Timestamp,
    /// Until when an abandon hides it; zero once that time has come.
    hidden_until: Timestamp,
    /// Whether the instance lock, live or not, holds it.
    locked: bool,
}

/// The messages of one instance.
#[derive(Debug, Clone, Default)]
pub(super) struct Mailbox {
    messages: BTreeMap<Place, Message>,
    keys: BTreeMap<String, Place>,
    locked: BTreeSet<Place>,
    hidden: BTreeSet<(Timestamp, Place)>,
    /// Arrivals of hidden queue messages: younger ones wait behind them.
    hidden_queue: BTreeSet<u64>,
    starts: BTreeSet<(MessageKind, Place)>,
    /// When each message was enqueued or is due, whichever is later; an orphan's time counts from there.
    ages: BTreeSet<(Timestamp, Place)>,
    queue_messages: usize,
    /// Messages for which [`is_from_client`] holds.
    from_clients: u64,
    touched: Touched<Place>,
}

/// How much of a mailbox a claim looks at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent {
    All,
    Bounded,
}

impl Mailbox {
    /// Since when the oldest message has waited.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.ages.first().map(|(since, _)| *since)
    }

    pub(super) fn holds_cancellation(&self) -> bool {
        self.messages.values().any(|message| message.data.starts_with(CANCELLATION))
    }

    /// Inserts a message, unless one with its key is queued.
    pub(super) fn insert(&mut self, row: &MessageRow, arrival: u64, now: Timestamp) {
        if row.key.as_ref().is_some_and(|key| self.keys.contains_key(key)) {
            return;
        }
        let place = Place { due_at_ms: due_at(row.visible, now), arrival };
        let message = Message {
            kind: row.kind,
            key: row.key.clone(),
            start: row.start.clone(),
            data: row.data.clone(),
            attempt_count: 0,
            enqueued_at: now,
            hidden_until: Timestamp::ZERO,
            locked: false,
        };
        self.touched.add(place);
        self.put(place, message);
    }

    /// Brings back a message that was kept elsewhere.
    pub(super) fn restore(&mut self, record: MessageRecord) {
        let place = Place { due_at_ms: record.due_at_ms, arrival: record.number };
        let message = Message {
            kind: record.kind,
            key: record.key,
            start: record.start,
            data: record.data,
            attempt_count: record.attempt_count,
            enqueued_at: record.enqueued_at,
            hidden_until: Timestamp::ZERO,
            locked: record.locked,
        };
        if record.locked {
            self.locked.insert(place);
        }
        self.put(place, message);
        if record.hidden_until > Timestamp::ZERO {
            self.hide(place, record.hidden_until);
        }
    }

    fn put(&mut self, place: Place, message: Message) {
        if let Some(key) = &message.key {
            self.keys.insert(key.clone(), place);
        }
        if is_start(message.kind) {
            self.starts.insert((message.kind, place));
        }
        if message.kind == MessageKind::Queue {
            self.queue_messages += 1;
        }
        self.ages.insert((message.age(place), place));
        self.from_clients += u64::from(is_from_client(place, &message));
        self.messages.insert(place, message);
    }

    /// Adds what changed since this was last called.
    pub(super) fn take_changes(&mut self, instance: &str, changes: &mut RowChanges<MessageRecord>) {
        for (place, touch) in self.touched.take() {
            match (touch, self.messages.get(&place).map(|message| message.record(place, instance))) {
                (Touch::Added, Some(record)) => changes.added.push(record),
                (_, Some(record)) => changes.changed.push(record),
                (_, None) => changes.removed.push((instance.to_owned(), place.arrival)),
            }
        }
    }

    pub(super) fn forget_changes(&mut self) {
        self.touched.forget();
    }

    pub(super) fn last_number(&self) -> u64 {
        self.messages.keys().map(|place| place.arrival).max().unwrap_or_default()
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Message> {
        let message = self.messages.remove(&place)?;
        self.touched.remove(place);
        if let Some(key) = &message.key {
            self.keys.remove(key);
        }
        if message.kind == MessageKind::Queue {
            self.queue_messages -= 1;
        }
        self.from_clients -= u64::from(is_from_client(place, &message));
        self.starts.remove(&(message.kind, place));
        self.ages.remove(&(message.age(place), place));
        self.hidden.remove(&(message.hidden_until, place));
        self.hidden_queue.remove(&place.arrival);
        self.locked.remove(&place);
        Some(message)
    }

    pub(super) fn remove_by_key(&mut self, key: &str) {
        if let Some(place) = self.keys.get(key).copied() {
            self.remove(place);
        }
    }

    /// The keys of queued messages.
    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.keys.keys()
    }

    /// Hides a message; `until` at or before now hides nothing.
    fn hide(&mut self, place: Place, until: Timestamp) {
        let Some(message) = self.messages.get_mut(&place) else { return };
        self.touched.change(place);
        self.hidden.remove(&(message.hidden_until, place));
        message.hidden_until = until;
        self.hidden.insert((until, place));
        if message.kind == MessageKind::Queue {
            self.hidden_queue.insert(place.arrival);
        }
    }

    /// Shows what was hidden until now or earlier.
    pub(super) fn show_due(&mut self, now: Timestamp) {
        while let Some((until, place)) = self.hidden.first().copied().filter(|(until, _)| *until <= now) {
            self.hidden.remove(&(until, place));
            self.hidden_queue.remove(&place.arrival);
            if let Some(message) = self.messages.get_mut(&place) {
                message.hidden_until = Timestamp::ZERO;
                self.touched.change(place);
            }
        }
    }

    /// Puts a message aside that could not be decoded. It is no queue message any more: nothing waits behind it.
    pub(super) fn hide_undecodable(&mut self, place: Place, until: Timestamp) {
        let Some(message) = self.messages.get_mut(&place) else { return };
        message.locked = false;
        self.locked.remove(&place);
        if message.kind == MessageKind::Queue {
            message.kind = MessageKind::Other;
            self.queue_messages -= 1;
        }
        self.hide(place, until);
    }

    /// Raises a message's attempt count and returns it.
    pub(super) fn count_attempt(&mut self, place: Place) -> u32 {
        let Some(message) = self.messages.get_mut(&place) else { return 0 };
        message.attempt_count = message.attempt_count.saturating_add(1);
        self.touched.change(place);
        message.attempt_count
    }

    /// Gives these messages to a new lock, and takes all others from the one before.
    pub(super) fn lock(&mut self, places: impl Iterator<Item = Place>) {
        self.unlock();
        self.locked = places.collect();
        for place in &self.locked {
            if let Some(message) = self.messages.get_mut(place) {
                message.locked = true;
                self.touched.change(*place);
            }
        }
    }

    fn unlock(&mut self) -> BTreeSet<Place> {
        let places = std::mem::take(&mut self.locked);
        for place in &places {
            if let Some(message) = self.messages.get_mut(place) {
                message.locked = false;
                self.touched.change(*place);
            }
        }
        places
    }

    /// Removes the messages the lock holds. One that arrived after the fetch belongs to the next turn.
    pub(super) fn consume_locked(&mut self) {
        for place in self.unlock() {
            self.remove(place);
        }
    }

    /// Gives back the messages the lock holds, hidden until `hidden_until`.
    pub(super) fn release_locked(&mut self, hidden_until: Option<Timestamp>, ignore_attempt: bool) {
        for place in self.unlock() {
            if let Some(message) = self.messages.get_mut(&place).filter(|_| ignore_attempt) {
                message.attempt_count = message.attempt_count.saturating_sub(1);
            }
            if let Some(until) = hidden_until {
                self.hide(place, until);
            }
        }
    }

    /// The places of the messages that a claim takes at this time, in the order of delivery.
    pub(super) fn batch(&self, now: Timestamp, extent: Extent) -> Vec<Place> {
        let mut batch = match extent {
            Extent::All => self.visible(now).map(|(place, _)| place).collect(),
            Extent::Bounded => self.bounded_batch(now),
        };
        sort_for_delivery(&mut batch, |place| Arrival {
            number: place.arrival,
            enqueued_at: self.messages.get(place).map(|message| message.enqueued_at).unwrap_or_default(),
            due_at: Timestamp::from_millis(place.due_at_ms),
        });
        batch
    }

    fn bounded_batch(&self, now: Timestamp) -> Vec<Place> {
        let mut batch = Vec::new();
        let mut bytes = 0_usize;
        for (place, message) in self.visible(now).take(CLAIM_MESSAGES_MAX) {
            bytes = bytes.saturating_add(message.data.len());
            if bytes > CLAIM_BYTES_MAX && !batch.is_empty() {
                break;
            }
            batch.push(place);
        }
        // Without its start an instance that does not exist yet cannot take the others.
        let last = batch.last().copied();
        let starts = [MessageKind::Start, MessageKind::ContinueAsNew];
        batch.extend(
            starts
                .into_iter()
                .filter_map(|kind| self.visible_start(kind, now))
                .filter(|place| last < Some(*place)),
        );
        batch
    }

    fn visible(&self, now: Timestamp) -> impl Iterator<Item = (Place, &Message)> {
        let end = Place { due_at_ms: now.as_millis(), arrival: u64::MAX };
        self.messages
            .range(..=end)
            .filter(|(place, message)| self.is_open(**place, message))
            .map(|(place, message)| (*place, message))
    }

    /// Whether neither an abandon hides the message nor an older hidden one holds it back.
    fn is_open(&self, place: Place, message: &Message) -> bool {
        let held_back = message.kind == MessageKind::Queue
            && self.hidden_queue.first().is_some_and(|oldest| *oldest < place.arrival);
        message.hidden_until == Timestamp::ZERO && !held_back
    }

    fn visible_start(&self, kind: MessageKind, now: Timestamp) -> Option<Place> {
        let visible = |place: &Place| {
            place.due_at_ms <= now.as_millis()
                && self.messages.get(place).is_some_and(|message| message.hidden_until == Timestamp::ZERO)
        };
        self.starts.iter().filter(|(k, _)| *k == kind).map(|(_, place)| *place).find(visible)
    }

    pub(super) fn has_visible(&self, now: Timestamp) -> bool {
        self.visible(now).next().is_some()
    }

    pub(super) fn has_visible_start(&self, now: Timestamp) -> bool {
        self.visible_start(MessageKind::Start, now).is_some()
            || self.visible_start(MessageKind::ContinueAsNew, now).is_some()
    }

    pub(super) fn has_start(&self) -> bool {
        !self.starts.is_empty()
    }

    /// The start that is first in line, visible or not.
    pub(super) fn first_start(&self) -> Option<&Message> {
        self.starts.first().and_then(|(_, place)| self.messages.get(place))
    }

    /// What the first visible message of this kind asks for.
    pub(super) fn start_target(&self, kind: MessageKind, now: Timestamp) -> Option<&StartTarget> {
        self.messages.get(&self.visible_start(kind, now)?)?.start.as_ref()
    }

    /// When something may become visible by itself.
    pub(super) fn next_visible(&self, now: Timestamp) -> Option<Timestamp> {
        let after = Place { due_at_ms: now.as_millis().saturating_add(1), arrival: 0 };
        let due =
            self.messages.range(after..).next().map(|(place, _)| Timestamp::from_millis(place.due_at_ms));
        let shown = self.hidden.first().map(|(until, _)| *until);
        due.into_iter().chain(shown).min()
    }

    /// When the oldest message has waited too long for an instance.
    pub(super) fn next_orphan(&self, ttl: Duration) -> Option<Timestamp> {
        self.ages.first().map(|(age, _)| age.saturating_add(ttl))
    }

    /// All messages, those that have waited longest first.
    pub(super) fn by_age(&self) -> Vec<Place> {
        self.ages.iter().map(|(_, place)| *place).collect()
    }

    /// The messages that have waited too long for an instance.
    pub(super) fn orphans(&self, ttl: Duration, now: Timestamp) -> Vec<Place> {
        self.ages
            .iter()
            .take_while(|(age, _)| age.saturating_add(ttl) <= now)
            .map(|(_, place)| *place)
            .collect()
    }

    pub(super) fn holds_only_queue_messages(&self) -> bool {
        !self.messages.is_empty() && self.queue_messages == self.messages.len()
    }

    /// How many events, queue messages and cancellations there are.
    pub(super) fn sent_by_clients(&self) -> u64 {
        self.from_clients
    }

    pub(super) fn has_attempted(&self) -> bool {
        self.messages.values().any(|message| message.attempt_count > 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn locked_len(&self) -> usize {
        self.locked.len()
    }

    pub(super) fn get(&self, place: Place) -> Option<&Message> {
        self.messages.get(&place)
    }

    pub(super) fn snapshot(&self, now: Timestamp) -> Vec<MessageSnapshot> {
        self.messages
            .iter()
            .map(|(place, message)| MessageSnapshot {
                due_at_ms: place.due_at_ms,
                hidden_until: Some(message.hidden_until).filter(|until| *until > now).unwrap_or_default(),
                attempt_count: message.attempt_count,
                locked: message.locked,
                key: message.key.clone(),
                data: message.data.clone(),
            })
            .collect()
    }
}

impl Message {
    fn record(&self, place: Place, instance: &str) -> MessageRecord {
        MessageRecord {
            instance: instance.to_owned(),
            number: place.arrival,
            kind: self.kind,
            key: self.key.clone(),
            start: self.start.clone(),
            due_at_ms: place.due_at_ms,
            enqueued_at: self.enqueued_at,
            hidden_until: self.hidden_until,
            attempt_count: self.attempt_count,
            locked: self.locked,
            data: self.data.clone(),
        }
    }

    fn age(&self, place: Place) -> Timestamp {
        self.enqueued_at.max(Timestamp::from_millis(place.due_at_ms))
    }
}

/// Whether a message of this kind can begin an execution.
pub(super) fn is_start(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Start | MessageKind::ContinueAsNew)
}

/// Whether clients send such messages. What the runtime sends has a key, or a time at which it is due.
fn is_from_client(place: Place, message: &Message) -> bool {
    message.key.is_none() && place.due_at_ms == 0 && !is_start(message.kind)
}

fn due_at(visible: Visibility, now: Timestamp) -> u64 {
    match visible {
        Visibility::Now => 0,
        Visibility::At(millis) => millis,
        Visibility::After(delay) => now.saturating_add(delay).as_millis_ceil(),
    }
}
