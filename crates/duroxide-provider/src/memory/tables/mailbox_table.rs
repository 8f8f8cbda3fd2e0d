//! The messages in the mailboxes of instances.

use duroxide_core::Timestamp;

use super::MemoryTables;
use crate::{
    rules::{ClaimBound, Extent, MailboxTable, NewMessage, QueuedMessage, Rows, VisibleMessages},
    store::MessageKind,
};

impl MailboxTable for MemoryTables {
    fn insert_message(&mut self, instance: u64, message: &NewMessage<'_>) -> Rows<bool> {
        Ok(self.messages.insert(instance, message))
    }

    fn visible_messages(
        &mut self,
        instance: u64,
        now: Timestamp,
        bound: ClaimBound,
    ) -> Rows<VisibleMessages> {
        Ok(self.messages.visible(instance, now, bound))
    }

    fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Rows<Option<QueuedMessage>> {
        Ok(self.messages.first_visible_start(instance, kind, now))
    }

    fn first_start(&mut self, instance: u64) -> Rows<Option<String>> {
        Ok(self.messages.first_start(instance).map(|start| start.data().to_owned()))
    }

    fn holds_of_clients(&mut self, instance: u64, at_least: u64) -> Rows<bool> {
        Ok(self.messages.sent_by_clients(instance) >= at_least)
    }

    fn has_messages(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.of(instance).next().is_some())
    }

    fn has_visible(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        Ok(self.messages.has_visible(instance, now))
    }

    fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        let is_visible = |kind| self.messages.first_visible_start(instance, kind, now).is_some();
        Ok(is_visible(MessageKind::Start) || is_visible(MessageKind::ContinueAsNew))
    }

    fn has_start(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.first_start(instance).is_some())
    }

    fn has_other_than_queue(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.has_other_than_queue(instance))
    }

    fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Rows<bool> {
        Ok(self.messages.has_hidden_queue(instance, now))
    }

    fn has_attempted(&mut self, instance: u64) -> Rows<bool> {
        Ok(self.messages.has_attempted(instance))
    }

    fn next_visible(&mut self, instance: u64, now: Timestamp) -> Rows<Option<Timestamp>> {
        Ok(self.messages.next_visible(instance, now))
    }

    fn oldest_message(&mut self, instance: u64) -> Rows<Option<Timestamp>> {
        let oldest = self.messages.waiting_since(instance, Timestamp::MAX).next();
        Ok(oldest.map(|message| message.row().waits_since()))
    }

    fn messages_waiting_since(&mut self, instance: u64, time: Timestamp) -> Rows<Vec<QueuedMessage>> {
        Ok(self.messages.waiting_since(instance, time).map(|message| message.whole()).collect())
    }

    fn mark_messages(&mut self, instance: u64, messages: &[QueuedMessage], mark: u64) -> Rows<()> {
        for message in messages {
            self.messages.change(&(instance, message.position()), |row| row.mark = Some(mark));
        }
        Ok(())
    }

    fn consume(&mut self, instance: u64, extent: &Extent) -> Rows<bool> {
        let held = self.messages.held_by(instance, extent);
        self.messages.remove_all(&held);
        self.has_messages(instance)
    }

    fn release(
        &mut self,
        instance: u64,
        extent: &Extent,
        hidden_until: Timestamp,
        attempts: u32,
    ) -> Rows<()> {
        self.messages.change_held(instance, extent, |row| {
            row.hidden_until = hidden_until;
            row.mark = None;
            row.attempts = row.attempts.saturating_add(attempts);
        });
        Ok(())
    }

    fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Rows<()> {
        self.messages.change_held(instance, extent, |row| row.attempts = row.attempts.saturating_add(1));
        Ok(())
    }

    fn update_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.messages.change(&(instance, message.position()), |row| {
            (row.kind, row.attempts, row.mark) = (message.kind, message.attempts, message.mark);
            row.hidden_until = message.hidden_until;
        });
        Ok(())
    }

    fn delete_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()> {
        self.messages.remove(&(instance, message.position()));
        Ok(())
    }

    fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Rows<bool> {
        Ok(self.messages.remove_by_key(instance, key))
    }

    fn calls_of(&mut self, parent: &str) -> Rows<Vec<(u64, String)>> {
        Ok(self.messages.calls_of(parent))
    }
}
