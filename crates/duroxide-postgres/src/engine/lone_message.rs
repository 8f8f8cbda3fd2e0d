//! Transactions of a single message to an instance that waits for it.
//!
//! A process that only raises events knows little of the instances they are for, so each event would cost it two round trips: one
//! to lock and load the instance, one to write. Where the instance waits for a message, one statement does both: a shortcut of
//! `rules/readiness.rs`, which says what it may assume.

use std::time::Instant;

use duroxide_provider::store::{
    Answer, Batch, Done, Fault, MessageKind, MessageRow, NextWake, Op, TransactionSteps, Visibility,
};

use super::{Clock, PostgresEngine};
use crate::{connection::Frame, session::News, tables::Woken};

/// After a message whose instance did not wait, so many go the general way: each try costs a round trip.
const SKIPPED: u32 = 16;

/// Whether lone messages are worth a try.
#[derive(Debug, Default)]
pub(super) struct LoneMessages {
    skips: u32,
}

impl LoneMessages {
    fn is_tried(&mut self) -> bool {
        let is_tried = self.skips == 0;
        self.skips = self.skips.saturating_sub(1);
        is_tried
    }

    fn note(&mut self, has_woken: bool) {
        self.skips = if has_woken { 0 } else { SKIPPED };
    }
}

impl PostgresEngine {
    /// Carries out a batch of one message if its instance waits for it. `None`: it is left to the general way.
    pub(super) fn transact_lone_message(&mut self, batch: &Batch<'_>) -> Result<Option<Done>, Fault> {
        // Tests, which bring their own clock, compare the two ways: each message is tried there.
        let is_tried = self.lone_messages.is_tried() || self.clock == Clock::Caller;
        let Some(message) = lone_message(batch).filter(|_| is_tried) else { return Ok(None) };
        self.ensure_open().map_err(Fault::Unavailable)?;
        let began = Instant::now();
        let now = (self.clock == Clock::Caller).then_some(batch.now);
        let woken = self.tables().wake_waiting(message, now);
        let woken = woken.map_err(|error| self.rules.roll_back_after(error.into_fault()))?;
        self.lone_messages.note(woken.is_some());
        let Some(woken) = woken else { return Ok(None) };
        self.tell_of_woken(woken);
        let mut done = Done::at(woken.now);
        done.answers.push(Ok(Answer::Done));
        done.readies.instances = true;
        if self.next_due.is_fresh() {
            done.next_wake = NextWake::Known(self.next_due.on_clock(began, batch.now));
        }
        Ok(Some(done))
    }

    /// Notifies others behind the commit, as any transaction does. A notification that fails is repeated with the next one.
    fn tell_of_woken(&mut self, woken: Woken) {
        let news = News { instances_from: Some(woken.place), ..News::default() };
        self.tables().expect_ready(news);
        if let Some(notification) = self.notification(Some(news)) {
            let was_notified = self.tables().connection().trip(&[notification], Frame::Single).is_ok();
            self.note_notified(was_notified);
        }
    }
}

/// The message that is all of a batch. Where a fetch waits for instances, the transaction that stores a message also claims
/// its instance.
fn lone_message<'a>(batch: &'a Batch<'_>) -> Option<&'a MessageRow> {
    let [submitted] = batch.operations.as_slice() else { return None };
    let Op::EnqueueMessage(message) = &*submitted.op else { return None };
    let is_alone = !batch.promote
        && batch.clock_set_forward.is_none()
        && batch.instance_fetches.is_empty()
        && batch.activity_fetches.is_empty();
    let is_plain = message.visible == Visibility::Now
        && matches!(message.kind, MessageKind::Queue | MessageKind::Other)
        && message.mailbox_max != Some(0);
    (is_alone && is_plain).then_some(message)
}
