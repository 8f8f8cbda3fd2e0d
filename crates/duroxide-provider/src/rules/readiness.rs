//! Whether and when an instance can be claimed.
//!
//! [`Rules::decide`] is the only place that answers this. Everything that changes a mailbox or a lock ends in
//! [`Rules::settle`], or in [`Rules::after_arrival`], which finds the same answer for one more message without looking at
//! the others.

use duroxide_core::Timestamp;

use super::{InstanceChange, InstanceRow, Readiness, Rows, Rules, Tables, is_start};
use crate::store::{MessageKind, MessageRow, Visibility};

/// The effect of one more message on readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterArrival {
    /// Nothing: the instance is locked, ready already, or goes on waiting.
    Unchanged,
    /// The instance waited on its route for a message, and is ready.
    Wakes,
    /// The whole mailbox has to be looked at.
    Decide,
}

impl<T: Tables> Rules<T> {
    /// Decides readiness and route of an instance. Returns `false` if it is a mailbox that holds nothing.
    ///
    /// An instance that stays ready keeps its number; one that becomes ready gets the next.
    pub(super) fn decide(&mut self, row: &mut InstanceRow) -> Rows<bool> {
        if let Some(lock) = row.lock.as_ref().filter(|lock| lock.lease.is_live(self.now)) {
            row.readiness = Readiness::Waiting { until: Some(lock.lease.until) };
            return Ok(true);
        }
        if row.known {
            self.decide_known(row)?;
            return Ok(true);
        }
        self.decide_mailbox(row)
    }

    fn decide_known(&mut self, row: &mut InstanceRow) -> Rows<()> {
        if !self.tables.has_messages(row.number)? {
            row.readiness = Readiness::Waiting { until: None };
        } else if self.tables.has_visible(row.number, self.now)? {
            row.route = Some(self.route_of_known(row)?);
            self.make_ready(row)?;
        } else {
            let until = self.tables.next_visible(row.number, self.now)?;
            row.readiness = Readiness::Waiting { until };
        }
        Ok(())
    }

    /// An instance that was never started is ready only with its start, so stray messages are never candidates (16.11).
    fn decide_mailbox(&mut self, row: &mut InstanceRow) -> Rows<bool> {
        let number = row.number;
        if !self.tables.has_messages(number)? {
            row.readiness = Readiness::Waiting { until: None };
            return self.tables.has_activities(number);
        }
        if self.tables.has_visible_start(number, self.now)? {
            row.route = Some(self.route_of_mailbox(number)?);
            self.make_ready(row)?;
            return Ok(true);
        }
        let next_visible = self.tables.next_visible(number, self.now)?;
        if self.tables.has_start(number)? {
            row.readiness = Readiness::Waiting { until: next_visible };
            return Ok(true);
        }
        let ttl = self.options.orphan_message_ttl;
        let too_old = self.tables.oldest_message(number)?.map(|since| since.saturating_add(ttl));
        let until = next_visible.into_iter().chain(too_old).min();
        if self.tables.has_other_than_queue(number)? {
            row.readiness = Readiness::Waiting { until };
        } else {
            let number = self.number_of_ready(row)?;
            row.route = None;
            row.readiness = Readiness::Stray { number, until };
        }
        Ok(true)
    }

    /// A stray mailbox that gets its start is new among the ready instances.
    fn make_ready(&mut self, row: &mut InstanceRow) -> Rows<()> {
        let number = match row.readiness {
            Readiness::Ready { number } => number,
            Readiness::Stray { .. } | Readiness::Waiting { .. } => self.tables.next_number()?,
        };
        row.readiness = Readiness::Ready { number };
        Ok(())
    }

    fn number_of_ready(&mut self, row: &InstanceRow) -> Rows<u64> {
        match row.ready_number() {
            Some(number) => Ok(number),
            None => self.tables.next_number(),
        }
    }

    /// Whether the messages of an instance let it be claimed.
    pub(super) fn has_work(&mut self, row: &InstanceRow) -> Rows<bool> {
        if row.known {
            self.tables.has_visible(row.number, self.now)
        } else {
            self.tables.has_visible_start(row.number, self.now)
        }
    }

    /// Decides readiness and writes it. A mailbox that holds nothing is deleted.
    pub(super) fn settle(&mut self, row: InstanceRow) -> Rows<()> {
        self.settle_with(row, InstanceChange::Readiness)
    }

    /// Decides readiness and writes it with other columns that have changed.
    pub(super) fn settle_with(&mut self, mut row: InstanceRow, change: InstanceChange) -> Rows<()> {
        if self.decide(&mut row)? {
            self.tables.update_instance(&row, change)
        } else {
            self.tables.delete_instance(row.number)
        }
    }

    /// Decides readiness anew: an instance that is still ready goes to the back, so that it does not starve others.
    pub(super) fn settle_at_the_back(&mut self, mut row: InstanceRow, change: InstanceChange) -> Rows<()> {
        row.readiness = Readiness::Waiting { until: None };
        self.settle_with(row, change)
    }

    /// One more message is in the mailbox of an instance.
    pub(super) fn settle_arrival(&mut self, row: InstanceRow, message: &MessageRow) -> Rows<()> {
        match self.after_arrival(&row, message)? {
            AfterArrival::Unchanged => Ok(()),
            AfterArrival::Wakes => {
                let ready = self.tables.next_number()?;
                self.tables.wake_instance(row.number, ready)
            }
            AfterArrival::Decide => self.settle(row),
        }
    }

    fn after_arrival(&mut self, row: &InstanceRow, message: &MessageRow) -> Rows<AfterArrival> {
        if row.is_locked(self.now) {
            return Ok(AfterArrival::Unchanged);
        }
        if row.known {
            self.after_arrival_at_known(row, message)
        } else {
            Ok(after_arrival_at_mailbox(row, message))
        }
    }

    fn after_arrival_at_known(&mut self, row: &InstanceRow, message: &MessageRow) -> Rows<AfterArrival> {
        if row.waits_for_successor() {
            // The first visible `ContinueAsNew` decides the route.
            return Ok(AfterArrival::Decide);
        }
        if row.ready_number().is_some() {
            return Ok(AfterArrival::Unchanged);
        }
        if message.visible != Visibility::Now {
            return Ok(AfterArrival::Decide);
        }
        if message.kind == MessageKind::Queue && self.tables.has_hidden_queue(row.number, self.now)? {
            return Ok(AfterArrival::Unchanged);
        }
        Ok(if row.route.is_some() { AfterArrival::Wakes } else { AfterArrival::Decide })
    }
}

fn after_arrival_at_mailbox(row: &InstanceRow, message: &MessageRow) -> AfterArrival {
    let (stray, waits_for_time) = match row.readiness {
        // A hidden start may have become visible since, and the first visible one decides the route.
        Readiness::Ready { .. } => return AfterArrival::Decide,
        Readiness::Stray { until, .. } => (true, until.is_some()),
        Readiness::Waiting { until } => (false, until.is_some()),
    };
    // The mailbox goes on waiting for its start, and the oldest message still decides until when.
    let stays = message.visible == Visibility::Now
        && !is_start(message.kind)
        && (message.kind == MessageKind::Queue || !stray);
    if stays && waits_for_time { AfterArrival::Unchanged } else { AfterArrival::Decide }
}

/// When a message becomes visible. Due times are whole milliseconds, rounded up: a delay never ends early.
pub(super) fn due_at(visible: Visibility, now: Timestamp) -> Timestamp {
    match visible {
        Visibility::Now => Timestamp::ZERO,
        Visibility::At(millis) => Timestamp::from_millis(millis),
        Visibility::After(delay) => Timestamp::from_millis(now.saturating_add(delay).as_millis_ceil()),
    }
}
