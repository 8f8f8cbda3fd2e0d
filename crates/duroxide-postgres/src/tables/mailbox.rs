//! Mailboxes: in the working set if they are short, in the database if they are long.

mod large;
mod wake;
pub(super) mod whole;

use std::collections::BTreeSet;

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{ClaimBound, Extent, NewMessage, QueuedMessage, Readiness, VisibleMessages},
    store::MessageKind,
};

pub(crate) use self::wake::Woken;
use self::{
    large::LargeMailbox,
    whole::{WholeMailbox, is_shown},
};
use super::{PostgresTables, load::NamedInstances, working_set::Mailbox};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::Message,
    value::{Columns, micros, number},
};

const DATA: &str = "SELECT message.instance, message.due_at, message.number, message.data
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (instance, due_at, number)
    JOIN {s}.message ON message.instance = ANY (ARRAY[wanted.instance]) AND message.due_at = wanted.due_at
        AND message.number = wanted.number";

type Position = (Timestamp, u64);

impl PostgresTables {
    /// Where the messages of an instance are.
    fn mailbox(&mut self, instance: u64) -> Result<Mailbox, DatabaseError> {
        if !self.set.mailboxes.contains_key(&instance) {
            self.load_instances(&NamedInstances { numbers: [instance].into(), ..NamedInstances::default() })?;
        }
        // The mailbox of a deleted instance: its remaining rows are in the database.
        Ok(self.set.mailboxes.get(&instance).copied().unwrap_or(Mailbox::Large))
    }

    fn whole(&self, instance: u64) -> WholeMailbox<'_> {
        WholeMailbox::new(&self.set.messages, instance)
    }

    fn large(&mut self, instance: u64) -> LargeMailbox<'_> {
        LargeMailbox { tables: self, instance }
    }

    // ---- questions ---------------------------------------------------------------------------------------------

    pub(super) fn visible_messages(
        &mut self,
        instance: u64,
        now: Timestamp,
        bound: ClaimBound,
    ) -> Result<VisibleMessages, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).visible(now, bound),
            Mailbox::Whole => {
                let visible = self.whole(instance).visible(now, bound);
                let messages = self.with_data(instance, &visible.numbers)?;
                Ok(VisibleMessages { messages, are_all: visible.are_all })
            }
        }
    }

    pub(super) fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Result<Option<QueuedMessage>, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).first_visible_start(kind, now),
            Mailbox::Whole => {
                let start = self.whole(instance).first_visible_start(kind, now);
                let position = start.map(QueuedMessage::position);
                Ok(self.with_data(instance, position.as_slice())?.into_iter().next())
            }
        }
    }

    pub(super) fn first_start(&mut self, instance: u64) -> Result<Option<String>, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).first_start(),
            Mailbox::Whole => {
                let position = self.whole(instance).first_start().map(QueuedMessage::position);
                let found = self.with_data(instance, position.as_slice())?.into_iter().next();
                Ok(found.map(|message| message.data))
            }
        }
    }

    pub(super) fn holds_of_clients(&mut self, instance: u64, at_least: u64) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).holds_of_clients(at_least),
            Mailbox::Whole => {
                let of_clients = self.whole(instance).queued().filter(|message| message.is_from_client());
                Ok(of_clients.count() as u64 >= at_least)
            }
        }
    }

    pub(super) fn has_messages(&mut self, instance: u64) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).has_messages(),
            Mailbox::Whole => Ok(self.whole(instance).all().next().is_some()),
        }
    }

    pub(super) fn has_visible(&mut self, instance: u64, now: Timestamp) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).has_visible(now),
            Mailbox::Whole => {
                let one = ClaimBound { messages: 1, bytes: usize::MAX };
                Ok(!self.whole(instance).visible(now, one).numbers.is_empty())
            }
        }
    }

    pub(super) fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).has_visible_start(now),
            Mailbox::Whole => {
                let mut messages = self.whole(instance).queued();
                Ok(messages.any(|message| message.is_start() && is_shown(message, now)))
            }
        }
    }

    pub(super) fn has_start(&mut self, instance: u64) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).has_start(),
            Mailbox::Whole => Ok(self.whole(instance).queued().any(QueuedMessage::is_start)),
        }
    }

    pub(super) fn has_other_than_queue(&mut self, instance: u64) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).has_other_than_queue(),
            Mailbox::Whole => {
                Ok(self.whole(instance).queued().any(|message| message.kind != MessageKind::Queue))
            }
        }
    }

    pub(super) fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).has_hidden_queue(now),
            Mailbox::Whole => Ok(self.whole(instance).held_from(now).is_some()),
        }
    }

    pub(super) fn has_attempted(&mut self, instance: u64) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).has_attempted(),
            Mailbox::Whole => Ok(self.whole(instance).queued().any(|message| message.attempts > 0)),
        }
    }

    pub(super) fn next_visible(
        &mut self,
        instance: u64,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).next_visible(now),
            Mailbox::Whole => Ok(self.whole(instance).next_visible(now)),
        }
    }

    pub(super) fn oldest_message(&mut self, instance: u64) -> Result<Option<Timestamp>, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).oldest(),
            Mailbox::Whole => Ok(self.whole(instance).queued().map(QueuedMessage::waits_since).min()),
        }
    }

    pub(super) fn messages_waiting_since(
        &mut self,
        instance: u64,
        since: Timestamp,
    ) -> Result<Vec<QueuedMessage>, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).waiting_since(since),
            Mailbox::Whole => {
                let waiting = self.whole(instance).waiting_since(since);
                let positions: Vec<Position> = waiting.iter().map(|message| message.position()).collect();
                self.with_data(instance, &positions)
            }
        }
    }

    // ---- texts -------------------------------------------------------------------------------------------------

    /// Messages of a whole mailbox with their texts.
    fn with_data(
        &mut self,
        instance: u64,
        positions: &[Position],
    ) -> Result<Vec<QueuedMessage>, DatabaseError> {
        let lacks_data = |position: &Position| {
            let message = self.set.messages.get(&(instance, position.0, position.1));
            message.is_some_and(|message| !message.has_data)
        };
        if positions.iter().any(lacks_data) {
            self.load_data(instance)?;
        }
        let found = positions.iter().filter_map(|(due_at, number)| {
            self.set.messages.get(&(instance, *due_at, *number)).map(|message| message.queued.clone())
        });
        Ok(found.collect())
    }

    /// Loads the missing texts of a mailbox, and of all mailboxes that may be claimed in this transaction: one round
    /// trip for all of them.
    fn load_data(&mut self, instance: u64) -> Result<(), DatabaseError> {
        let ready = self.set.instances.rows().filter(|row| matches!(row.readiness, Readiness::Ready { .. }));
        let mut instances: BTreeSet<u64> = ready.map(|row| row.number).collect();
        instances.insert(instance);
        let missing = self.set.messages.rows().filter(|message| !message.has_data);
        let missing: Vec<_> = missing.map(Message::key).filter(|key| instances.contains(&key.0)).collect();
        let parameters = parameters![
            missing.iter().map(|key| number(key.0)).collect::<Vec<_>>(),
            missing.iter().map(|key| micros(key.1)).collect::<Vec<_>>(),
            missing.iter().map(|key| number(key.2)).collect::<Vec<_>>(),
        ];
        for row in self.send(&[Query::new(DATA, parameters)])?.iter().flatten() {
            let key = (row.number("instance")?, row.time("due_at")?, row.number("number")?);
            if let Some(message) = self.set.messages.get_mut(&key) {
                message.queued.data = row.column("data")?;
                message.has_data = true;
            }
        }
        Ok(())
    }

    // ---- changes -----------------------------------------------------------------------------------------------

    pub(super) fn insert_message(
        &mut self,
        instance: u64,
        new: &NewMessage<'_>,
    ) -> Result<bool, DatabaseError> {
        let mailbox = self.mailbox(instance)?;
        if let Some(key) = &new.prepared.key {
            let is_queued = match mailbox {
                Mailbox::Large => self.large(instance).has_key(key)?,
                Mailbox::Whole => {
                    self.whole(instance).queued().any(|message| message.key.as_ref() == Some(key))
                }
            };
            if is_queued {
                return Ok(false);
            }
        }
        let queued = new.queued();
        let message = Message { instance, bytes: queued.data.len(), has_data: true, queued };
        self.set.messages.put(message.key(), message);
        Ok(true)
    }

    pub(super) fn mark_messages(
        &mut self,
        instance: u64,
        messages: &[QueuedMessage],
        mark: u64,
    ) -> Result<(), DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).mark(messages, mark),
            Mailbox::Whole => {
                let keys: Vec<_> =
                    messages.iter().map(|message| (instance, message.due_at, message.number)).collect();
                self.change_messages(keys, |message| message.mark = Some(mark));
                Ok(())
            }
        }
    }

    pub(super) fn consume(&mut self, instance: u64, extent: &Extent) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).consume(extent),
            Mailbox::Whole => {
                for key in self.held_keys(instance, extent) {
                    self.set.messages.delete(&key);
                }
                Ok(self.whole(instance).all().next().is_some())
            }
        }
    }

    pub(super) fn release(
        &mut self,
        instance: u64,
        extent: &Extent,
        hidden_until: Timestamp,
        attempts: u32,
    ) -> Result<(), DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).release(extent, hidden_until, attempts),
            Mailbox::Whole => {
                let keys = self.held_keys(instance, extent);
                self.change_messages(keys, |message| {
                    message.hidden_until = hidden_until;
                    message.mark = None;
                    message.attempts = message.attempts.saturating_add(attempts);
                });
                Ok(())
            }
        }
    }

    pub(super) fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Result<(), DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).count_attempt(extent),
            Mailbox::Whole => {
                let keys = self.held_keys(instance, extent);
                self.change_messages(keys, |message| message.attempts = message.attempts.saturating_add(1));
                Ok(())
            }
        }
    }

    pub(super) fn update_message(
        &mut self,
        instance: u64,
        changed: &QueuedMessage,
    ) -> Result<(), DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).update(changed),
            Mailbox::Whole => {
                self.change_messages(vec![(instance, changed.due_at, changed.number)], |message| {
                    message.kind = changed.kind;
                    message.attempts = changed.attempts;
                    message.mark = changed.mark;
                    message.hidden_until = changed.hidden_until;
                });
                Ok(())
            }
        }
    }

    pub(super) fn delete_message(
        &mut self,
        instance: u64,
        message: &QueuedMessage,
    ) -> Result<(), DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).delete(message),
            Mailbox::Whole => {
                self.set.messages.delete(&(instance, message.due_at, message.number));
                Ok(())
            }
        }
    }

    pub(super) fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Result<bool, DatabaseError> {
        match self.mailbox(instance)? {
            Mailbox::Large => self.large(instance).delete_by_key(key),
            Mailbox::Whole => {
                let has_key = |message: &&Message| message.queued.key.as_deref() == Some(key);
                let found = self.whole(instance).all().find(has_key).map(Message::key);
                found.iter().for_each(|key| self.set.messages.delete(key));
                Ok(found.is_some())
            }
        }
    }

    fn held_keys(&self, instance: u64, extent: &Extent) -> Vec<(u64, Timestamp, u64)> {
        let held = self.whole(instance).all().filter(|message| extent.holds(&message.queued));
        held.map(Message::key).collect()
    }

    fn change_messages(&mut self, keys: Vec<(u64, Timestamp, u64)>, change: impl Fn(&mut QueuedMessage)) {
        for key in keys {
            if let Some(mut message) = self.set.messages.get(&key).cloned() {
                change(&mut message.queued);
                self.set.messages.put(key, message);
            }
        }
    }
}
