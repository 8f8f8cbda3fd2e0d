//! Messages to instances: enqueueing them, and making the rows of new instances.

use duroxide_core::INITIAL_EXECUTION_ID;

use super::{
    InstanceRow, NewMessage, QueuedMessage, Rows, Rules, Tables,
    readiness::{due_at, route_of_start},
};
use crate::store::{Answer, MessageRow, StoredStart, Visibility, timer_key};

impl<T: Tables> Rules<T> {
    /// Queues a message, and makes its instance ready if it waited for such a message.
    pub(super) fn enqueue(&mut self, message: &MessageRow) -> Rows<Answer> {
        if self.begin_instance(message)? {
            return Ok(Answer::Begun);
        }
        if let Some(max) = message.mailbox_max
            && let Some(row) = self.tables.instance_named(&message.instance)?
            && self.tables.holds_of_clients(row.number, max)?
        {
            return Ok(Answer::MailboxFull);
        }
        let row = self.open_instance(&message.instance)?;
        self.enqueue_to(row, message)?;
        Ok(Answer::Done)
    }

    /// Queues a start, unless its instance exists or has one.
    pub(super) fn start_if_new(&mut self, start: &MessageRow) -> Rows<Answer> {
        if self.begin_instance(start)? {
            return Ok(Answer::Begun);
        }
        let row = self.open_instance(&start.instance)?;
        match self.stored_start(&row)? {
            Some(found) => Ok(Answer::Found(found)),
            None => self.enqueue_to(row, start).map(|()| Answer::Done),
        }
    }

    /// Makes the row of a new instance, ready, with the start in its mailbox. Most starts are of new instances, so the row
    /// is not read first. Returns whether the row is new.
    fn begin_instance(&mut self, message: &MessageRow) -> Rows<bool> {
        let Some(start) = message.start.as_ref().filter(|_| message.visible == Visibility::Now) else {
            return Ok(false);
        };
        let route = self.tables.route_id(&route_of_start(start.clone()))?;
        let (number, ready) = (self.tables.next_number()?, self.tables.next_number()?);
        let mut row = InstanceRow::mailbox(number, &message.instance, self.now);
        row.ready_for_start(route, ready);
        let is_new = self.tables.insert_instance(&row)? && self.insert_message(number, message)?;
        if is_new {
            self.new_instances.add(number);
        }
        Ok(is_new)
    }

    /// Queues a message of this instance.
    pub(super) fn enqueue_to(&mut self, row: InstanceRow, message: &MessageRow) -> Rows<()> {
        if self.insert_message(row.number, message)? {
            self.settle_arrival(row, message)?;
        }
        Ok(())
    }

    /// Inserts a message, unless one with its key is queued.
    pub(super) fn insert_message(&mut self, instance: u64, message: &MessageRow) -> Rows<bool> {
        let number = self.tables.next_number()?;
        if self.is_first_attempt {
            self.early_messages.insert(number);
        }
        let due_at = due_at(message.visible, self.now);
        let message = NewMessage { number, due_at, enqueued_at: self.now, prepared: message };
        let is_new = self.tables.insert_message(instance, &message)?;
        if is_new && self.attempts_before > 0 {
            let attempted = QueuedMessage { attempts: self.attempts_before, ..message.queued() };
            self.tables.update_message(instance, &attempted)?;
        }
        Ok(is_new)
    }

    /// The row of this id, or of a new mailbox.
    pub(super) fn open_instance(&mut self, id: &str) -> Rows<InstanceRow> {
        if let Some(row) = self.tables.instance_named(id)? {
            return Ok(row);
        }
        let row = InstanceRow::mailbox(self.tables.next_number()?, id, self.now);
        self.tables.insert_instance(&row)?;
        Ok(row)
    }

    /// How an instance was started; `None` for a mailbox without a start.
    fn stored_start(&mut self, row: &InstanceRow) -> Rows<Option<StoredStart>> {
        if row.known {
            let first = self.tables.first_event(row.number, INITIAL_EXECUTION_ID)?;
            return Ok(Some(first.map_or(StoredStart::Unknown, StoredStart::Recorded)));
        }
        Ok(self.tables.first_start(row.number)?.map(StoredStart::Queued))
    }

    /// Deletes the message of a timer that no longer counts; an unknown one is no error.
    pub(super) fn cancel_timer(&mut self, instance: u64, execution_id: u64, timer_id: u64) -> Rows<()> {
        self.tables.delete_message_by_key(instance, &timer_key(execution_id, timer_id)).map(|_| ())
    }
}
