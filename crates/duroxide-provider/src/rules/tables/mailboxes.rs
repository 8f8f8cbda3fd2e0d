//! The messages in the mailboxes of instances.

use duroxide_core::Timestamp;

use crate::{
    rules::{ClaimBound, Extent, NOT_HIDDEN, QueuedMessage, Rows, VisibleMessages},
    store::{MessageKind, MessageRow},
};

/// The messages in the mailboxes of instances.
pub trait MailboxTable {
    /// Inserts a message, unless one with its key is in the mailbox. Returns whether it was inserted.
    fn insert_message(&mut self, instance: u64, message: &NewMessage<'_>) -> Rows<bool>;

    /// Messages that are due, not hidden, and not queue messages behind a hidden queue message, by position.
    fn visible_messages(&mut self, instance: u64, now: Timestamp, bound: ClaimBound)
    -> Rows<VisibleMessages>;

    /// The first message of this kind that is due and not hidden, by position.
    fn first_visible_start(
        &mut self,
        instance: u64,
        kind: MessageKind,
        now: Timestamp,
    ) -> Rows<Option<QueuedMessage>>;

    /// The JSON of the first start or `ContinueAsNew`, visible or not, by (kind, position).
    fn first_start(&mut self, instance: u64) -> Rows<Option<String>>;

    /// Whether at least this many messages of clients are in the mailbox: due at once, without a key, and no starts.
    fn holds_of_clients(&mut self, instance: u64, at_least: u64) -> Rows<bool>;

    /// Whether any message is in the mailbox.
    fn has_messages(&mut self, instance: u64) -> Rows<bool>;

    /// Whether [`Self::visible_messages`] would find one.
    fn has_visible(&mut self, instance: u64, now: Timestamp) -> Rows<bool>;

    /// Whether a start or `ContinueAsNew` is due and not hidden.
    fn has_visible_start(&mut self, instance: u64, now: Timestamp) -> Rows<bool>;

    /// Whether a start or `ContinueAsNew` is in the mailbox, visible or not.
    fn has_start(&mut self, instance: u64) -> Rows<bool>;

    /// Whether a message is in the mailbox that is no queue message.
    fn has_other_than_queue(&mut self, instance: u64) -> Rows<bool>;

    /// Whether a hidden queue message is in the mailbox: those behind it wait for it.
    fn has_hidden_queue(&mut self, instance: u64, now: Timestamp) -> Rows<bool>;

    /// Whether a message that was claimed before is in the mailbox.
    fn has_attempted(&mut self, instance: u64) -> Rows<bool>;

    /// The earliest time after `now` at which a message becomes due or is no longer hidden.
    fn next_visible(&mut self, instance: u64, now: Timestamp) -> Rows<Option<Timestamp>>;

    /// Since when the oldest message waits ([`QueuedMessage::waits_since`]).
    fn oldest_message(&mut self, instance: u64) -> Rows<Option<Timestamp>>;

    /// Messages that wait since this time or longer, longest first, then by position.
    fn messages_waiting_since(&mut self, instance: u64, time: Timestamp) -> Rows<Vec<QueuedMessage>>;

    /// Gives messages the mark of an [`Extent::Marked`].
    fn mark_messages(&mut self, instance: u64, messages: &[QueuedMessage], mark: u64) -> Rows<()>;

    /// Deletes the messages of an extent; returns whether the mailbox has more.
    fn consume(&mut self, instance: u64, extent: &Extent) -> Rows<bool>;

    /// Hides the messages of an extent until this time, takes their mark away and adds to their attempts.
    fn release(&mut self, instance: u64, extent: &Extent, hidden_until: Timestamp, attempts: u32)
    -> Rows<()>;

    /// Adds one to the attempts of the messages of an extent.
    fn count_attempt(&mut self, instance: u64, extent: &Extent) -> Rows<()>;

    /// Writes kind, attempts, mark and hidden-until of a message.
    fn update_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()>;

    /// Deletes a message.
    fn delete_message(&mut self, instance: u64, message: &QueuedMessage) -> Rows<()>;

    /// Deletes the message with this key; returns whether there was one.
    fn delete_message_by_key(&mut self, instance: u64, key: &str) -> Rows<bool>;

    /// The child starts in all mailboxes that carry out a call of this parent: number of the child's row, and key. Calls that are
    /// gone by now may be among them.
    fn calls_of(&mut self, parent: &str) -> Rows<Vec<(u64, String)>>;
}

/// A message that is put into a mailbox.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// Its number.
    pub number: u64,
    /// When it becomes visible; zero: at once.
    pub due_at: Timestamp,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// The message.
    pub prepared: &'a MessageRow,
}

impl NewMessage<'_> {
    /// The stored message.
    pub fn queued(&self) -> QueuedMessage {
        QueuedMessage {
            number: self.number,
            due_at: self.due_at,
            kind: self.prepared.kind,
            key: self.prepared.key.clone(),
            enqueued_at: self.enqueued_at,
            hidden_until: NOT_HIDDEN,
            attempts: 0,
            mark: None,
            data: self.prepared.data.clone(),
            item: self.prepared.item.clone(),
        }
    }
}
