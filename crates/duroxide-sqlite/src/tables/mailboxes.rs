//! The messages in the mailboxes of instances, from the row cache where it knows them.

pub(crate) mod messages;

use duroxide_core::Timestamp;
use duroxide_provider::{
    rules::{BatchBound, Extent, MailboxTable, NewMessage, QueuedMessage, Rows, VisibleMessages},
    store::MessageKind,
};

use super::{SqliteTables, row_cache::Taken};

impl MailboxTable for SqliteTables {
    fn insert_message(&mut self, instance: u64, message: &NewMessage<'_>) -> Rows<bool> {
        let split = self.payloads.split_queued(&mut self.sequence, instance, &message.prepared.data);
        let is_new = messages::insert(&self.db, instance, message, &split)?;
        if is_new {
            self.payloads.insert(&self.db, instance, &split)?;
            self.cache.message_arrived(instance, message);
        }
        Ok(is_new)
    }

    fn visible_messages(
        &mut self,
        instance: u64,
        now: Timestamp,
        bound: BatchBound,
    ) -> Rows<VisibleMessages> {
        match self.cache.take_messages(instance) {
            Some(visible) => Ok(visible),
            None => {
                let visible = messages::visible(&self.db, instance, now, bound)?;
                self.cache.messages_read(instance, &visible);
                Ok(visible)
            }
        }
    }

    fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Rows<Option<QueuedMessage>> {
        messages::first_visible_start(&self.db, instance, kind, now)
    }

    fn first_start(&mut self, instance: u64) -> Rows<Option<String>> {
        messages::first_start(&self.db, instance)
    }

    fn has_messages(&mut self, instance: u64) -> Rows<bool> {
        messages::any(&self.db, instance)
    }

    fn has_visible(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        messages::has_visible(&self.db, instance, now)
    }

    fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        messages::has_visible_start(&self.db, instance, now)
    }

    fn has_start(&mut self, instance: u64) -> Rows<bool> {
        messages::has_start(&self.db, instance)
    }

    fn has_other_than_queue(&mut self, instance: u64) -> Rows<bool> {
        messages::has_other_than_queue(&self.db, instance)
    }

    fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        messages::has_hidden_queue(&self.db, instance, now)
    }

    fn has_attempted(&mut self, instance: u64) -> Rows<bool> {
        messages::has_attempted(&self.db, instance)
    }

    fn next_visible(&mut self, instance: u64, now: Timestamp) -> Rows<Option<Timestamp>> {
        messages::next_visible(&self.db, instance, now)
    }

    fn oldest_message(&mut self, instance: u64) -> Rows<Option<Timestamp>> {
        messages::oldest(&self.db, instance)
    }

    fn messages_waiting_since(&mut self, instance: u64, time: Timestamp) -> Rows<Vec<QueuedMessage>> {
        messages::waiting_since(&self.db, instance, time)
    }

    fn mark_messages(&mut self, instance: u64, marked: &[QueuedMessage], mark: u64) -> Rows<()> {
        messages::mark(&self.db, instance, marked, mark)
    }

    fn consume(&mut self, instance: u64, extent: &Extent) -> Rows<bool> {
        match (self.cache.taken(instance), extent) {
            // A row that is deleted by its key costs SQLite half of one that is deleted by a range.
            (Taken::One(due_at, seq), _) => messages::delete(&self.db, instance, due_at, seq)?,
            (Taken::AtOnce, Extent::Visible { at, up_to }) => {
                messages::consume_at_once(&self.db, instance, *at, *up_to)?;
            }
            _ => messages::consume(&self.db, instance, extent)?,
        }
        let are_left = match self.cache.are_left(instance) {
            Some(are_left) => are_left,
            None => messages::any(&self.db, instance)?,
        };
        self.cache.consumed(instance, are_left);
        Ok(are_left)
    }

    fn release(
        &mut self,
        instance: u64,
        extent: &Extent,
        hidden_until: Timestamp,
        attempts: u32,
    ) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::release(&self.db, instance, extent, hidden_until, attempts)
    }

    fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::count_attempt(&self.db, instance, extent)
    }

    fn update_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::update(&self.db, instance, message)
    }

    fn delete_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.cache.mailbox_changed(instance);
        messages::delete(&self.db, instance, message.due_at, message.number)
    }

    fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Rows<bool> {
        self.cache.mailbox_changed(instance);
        messages::delete_by_key(&self.db, instance, key)
    }

    fn calls_of(&mut self, parent: &str) -> Rows<Vec<(u64, String)>> {
        messages::calls_of(&self.db, parent)
    }
}
