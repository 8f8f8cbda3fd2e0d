//! Whether and when an instance or an activity can be claimed.
//!
//! Every change of a [`Readiness`], and of [`QueuedActivity::waits_until`], is made by a function of this file. For instances
//! [`Rules::decide`] is the general answer: it reads the lock and the mailbox. The other functions give the same answer for
//! one event and read less: a start of a new instance, one more message, a claim, a round that leaves an empty mailbox.
//! [`InstanceRow::can_run_with`] decides which messages let an instance be claimed, `rules/readiness/routes.rs` which route a
//! claim must accept; [`WorkRows`](super::WorkRows) shows both to users. For activities [`Rules::settle_activity`] is the
//! general answer; a new one is ready at once ([`QueuedActivity::new`]).
//!
//! Tables may answer five questions by a statement of their own. Each repeats a function of this file, answers only where it can
//! be sure, and leaves everything else to that function; the differential test compares both ways with the model.
//!
//! | Primitive | Repeats | May assume |
//! |---|---|---|
//! | [`InstanceTable::wake_if_waiting`] | [`Rules::after_arrival`] with the result [`AfterArrival::Wakes`] | the message is visible at once, no start and no queue message |
//! | [`DueInstance::is_plainly_ready`] | [`Rules::decide`] of an instance that has become due | nothing |
//! | [`ActivityTable::wake_due_activities`] | [`Rules::settle_activity`] of activities that have become due | [`QueuedActivity::waits_until`] was decided here |
//! | `wake_waiting` of PostgreSQL, for a batch of one message | [`Rules::after_arrival`] with the result [`AfterArrival::Wakes`] | the message is visible at once and no start; a known instance that waits without an end has no messages |
//! | the column `look_at` of PostgreSQL (`look_at!`, `CORRECT_LOOKS`) | [`InstanceRow::waits_until`] | a row may be read too early, and then gets another time; one whose lock has a holder is read each minute |
//!
//! An index finds rows only by a condition in SQL, so statements also repeat these functions of rows. In SQLite each is one
//! macro, or the named statements; in PostgreSQL the macros are in `record/rules_in_sql.rs`, and other places are named.
//!
//! | Function | SQLite | PostgreSQL |
//! |---|---|---|
//! | [`QueuedMessage::is_visible`] | `is_visible!`; `at_once!` and `became_due!` for two ranges of a key | `is_visible!` |
//! | [`QueuedMessage::holds_back`], [`QueuedMessage::waits_behind`] | `holds_back!`, `may_be_claimed!` | `mailbox/large.rs` |
//! | [`Extent::holds`](super::Extent::holds) | `held!`; `at_once!`, `became_due!` and `marked!` for an index each | `holds!` |
//! | [`QueuedMessage::waits_since`] | `waits_since!` | `waits_since!` |
//! | [`QueuedMessage::is_from_client`] | `COUNT_BEHIND` | `HOLDS_OF_CLIENTS`, `MAILBOX_HOLDS` |
//! | [`is_start`] | `kind <= 1`, the condition of an index | the same |
//! | [`is_end_of_instance`](super::is_end_of_instance) | `is_end_of_instance!` | `is_end_of_instance!`; `record/instance.rs` and `reads/listing.rs`, for the column `ended` |
//! | [`Lease::is_live`](super::Lease::is_live) | `lock_until > ?`, in `tables/{instances,activities,sessions}.rs` and `reads` | the same, in `tables/{nodes,sessions,instances,activities}.rs` and `reads` |
//! | [`ClaimBound::admits`](super::ClaimBound::admits) | in memory | `mailbox/large.rs` |
//! | [`QueuedActivity::is_ready`], [`QueuedActivity::is_locked`] for counts of a queue | `reads/summary.rs` | `reads/summary.rs` |
//! | Which instances are pending: unknown ones with a queued start, [`pending_info`](crate::store::pending_info) | `reads.rs`, `reads/listing/pending.rs` | `reads/{history,listing,overview}.rs` |
//! | Values with the changes of the running execution over them | `tables/state/key_values.rs` | `reads/history.rs` |
//! | Which instances a bulk delete or prune takes: [`InstanceTable::bulk_selection`] | `selected!` | `BULK` |
//! | Which sessions have ended without activities: [`SessionTable::delete_ended_sessions`] | `DELETE_ENDED` | the statement of that method |
//!
//! [`InstanceTable::wake_if_waiting`]: super::InstanceTable::wake_if_waiting
//! [`InstanceTable::bulk_selection`]: super::InstanceTable::bulk_selection
//! [`SessionTable::delete_ended_sessions`]: super::SessionTable::delete_ended_sessions
//! [`DueInstance::is_plainly_ready`]: super::DueInstance::is_plainly_ready
//! [`ActivityTable::wake_due_activities`]: super::ActivityTable::wake_due_activities

mod routes;

use duroxide_core::Timestamp;

pub(super) use self::routes::{route_of_start, route_with, start_target};
use super::{
    InstanceChange, InstanceLock, InstanceRow, Lease, NOT_HIDDEN, QueuedActivity, QueuedMessage, Readiness,
    RouteId, Rows, Rules, Tables, VISIBLE_AT_ONCE, is_start,
};
use crate::store::{MessageKind, MessageRow, Visibility};

/// The effect of one more message on readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterArrival {
    /// Nothing: the instance is locked, ready already, or goes on waiting.
    Unchanged,
    /// The instance waited on its route for a message, and is ready.
    Wakes,
    /// The whole mailbox has to be read.
    Decide,
}

impl Readiness {
    /// Only one more message can make the instance ready.
    pub(super) const fn waits_for_message() -> Self {
        Self::Waiting { until: None }
    }

    /// A live lease holds the instance.
    const fn locked_until(until: Timestamp) -> Self {
        Self::Waiting { until: Some(until) }
    }
}

impl InstanceRow {
    /// Makes a new mailbox ready for its start, which is visible at once and asks for this route.
    pub(super) fn ready_for_start(&mut self, route: RouteId, ready: u64) {
        self.route = Some(route);
        self.readiness = Readiness::Ready { number: ready };
    }

    /// Makes the instance ready, as [`InstanceTable::wake_instance`](super::InstanceTable::wake_instance) does.
    pub fn wake(&mut self, ready: u64) {
        self.readiness = Readiness::Ready { number: ready };
    }

    /// A claim locks the instance.
    pub(super) fn lock(&mut self, lock: InstanceLock) {
        self.readiness = Readiness::locked_until(lock.lease.until);
        self.lock = Some(lock);
    }

    /// Drops the ready number: if the instance is still ready it goes to the back, so that other instances do not starve.
    /// Readiness has to be decided anew.
    pub(super) fn drop_ready_number(&mut self) {
        self.readiness = Readiness::waits_for_message();
    }

    /// Whether these messages, all of them visible, let the unlocked instance be claimed: an instance that was never started
    /// needs its start.
    pub(super) fn can_run_with<'a>(&self, visible: impl IntoIterator<Item = &'a QueuedMessage>) -> bool {
        visible.into_iter().any(|message| self.known || message.is_start())
    }

    /// Whether a claim that accepts its route takes it.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.readiness, Readiness::Ready { .. })
    }
}

impl QueuedActivity {
    /// A claim locks the activity, and ends the hiding by an abandon.
    pub(super) fn hold(&mut self, lease: Lease) {
        self.hidden_until = NOT_HIDDEN;
        self.waits_until = Some(lease.until);
        self.lock = Some(lease);
    }

    /// Decides when the activity can be claimed: its lease has ended, and no abandon hides it.
    fn decide(&mut self, now: Timestamp) {
        let leased_until = self.lock.as_ref().map(|lease| lease.until);
        let until = leased_until.map_or(self.hidden_until, |leased| leased.max(self.hidden_until));
        self.waits_until = (now < until).then_some(until);
    }

    /// Whether a claim that accepts its lane and its session takes it.
    pub fn is_ready(&self) -> bool {
        self.waits_until.is_none()
    }
}

impl<T: Tables> Rules<T> {
    /// Decides readiness and route of an instance. Returns `false` if it is a mailbox that holds nothing.
    ///
    /// An instance that stays ready keeps its number; one that becomes ready gets the next.
    pub(super) fn decide(&mut self, row: &mut InstanceRow) -> Rows<bool> {
        if let Some(lock) = row.lock.as_ref().filter(|lock| lock.lease.is_live(self.now)) {
            row.readiness = Readiness::locked_until(lock.lease.until);
            return Ok(true);
        }
        if !self.tables.has_messages(row.number)? {
            row.readiness = Readiness::waits_for_message();
            return Ok(row.known || self.tables.has_activities(row.number)?);
        }
        if self.has_work(row)? {
            row.route = Some(self.route_of(row)?);
            self.make_ready(row)?;
            return Ok(true);
        }
        let until = self.tables.next_visible(row.number, self.now)?;
        if row.known || self.tables.has_start(row.number)? {
            row.readiness = Readiness::Waiting { until };
        } else {
            self.decide_orphan(row, until)?;
        }
        Ok(true)
    }

    /// Decides readiness of a mailbox whose messages wait for a start that was not sent (16.11).
    fn decide_orphan(&mut self, row: &mut InstanceRow, next_visible: Option<Timestamp>) -> Rows<()> {
        let ttl = self.options.orphan_message_ttl;
        let too_old = self.tables.oldest_message(row.number)?.map(|since| since.saturating_add(ttl));
        let until = next_visible.into_iter().chain(too_old).min();
        if self.tables.has_other_than_queue(row.number)? {
            row.readiness = Readiness::Waiting { until };
        } else {
            let number = self.number_of_ready(row)?;
            row.route = None;
            row.readiness = Readiness::Stray { number, until };
        }
        Ok(())
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

    /// Decides readiness and route after a round. `is_empty`: no message is left in the mailbox and none was sent to it, so
    /// nothing has to be read.
    pub(super) fn decide_after_round(&mut self, row: &mut InstanceRow, is_empty: bool) -> Rows<bool> {
        if row.known && is_empty {
            row.readiness = Readiness::waits_for_message();
            return Ok(true);
        }
        self.decide(row)
    }

    /// Gives an instance that can be claimed its number among the ready ones now. The rest of [`Self::decide`] follows.
    pub(super) fn assign_ready_number(&mut self, row: &mut InstanceRow) -> Rows<()> {
        if row.ready_number().is_none() && self.has_work(row)? {
            row.readiness = Readiness::Ready { number: self.tables.next_number()? };
        }
        Ok(())
    }

    /// [`InstanceRow::can_run_with`] its visible messages. Stray messages are therefore never candidates (16.11).
    fn has_work(&mut self, row: &InstanceRow) -> Rows<bool> {
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

    /// Decides readiness anew: an instance that is still ready goes to the back.
    pub(super) fn settle_at_the_back(&mut self, mut row: InstanceRow, change: InstanceChange) -> Rows<()> {
        row.drop_ready_number();
        self.settle_with(row, change)
    }

    /// Decides readiness of a row that was stored elsewhere. A ready instance keeps its ready number as long as it has
    /// messages: the claim that takes it checks whether one is visible.
    pub(super) fn settle_stored(&mut self, row: InstanceRow) -> Rows<()> {
        let has_ready_number = row.is_ready() && row.route.is_some();
        if has_ready_number && self.tables.has_messages(row.number)? { Ok(()) } else { self.settle(row) }
    }

    /// Writes an activity, and decides when it can be claimed.
    pub(super) fn settle_activity(&mut self, mut activity: QueuedActivity) -> Rows<()> {
        activity.decide(self.now);
        self.tables.update_activity(&activity)
    }

    /// One more message is in the mailbox of an instance.
    pub(super) fn settle_arrival(&mut self, row: InstanceRow, message: &MessageRow) -> Rows<()> {
        match self.after_arrival(&row, message)? {
            AfterArrival::Unchanged => Ok(()),
            AfterArrival::Wakes => self.wake(row.number),
            AfterArrival::Decide => self.settle(row),
        }
    }

    /// Wakes an instance for a message that is not in its mailbox yet, if the tables know that it waits for one. Returns
    /// whether they knew it.
    pub(super) fn wake_for(&mut self, instance: u64, message: &MessageRow) -> Rows<bool> {
        if message.kind != MessageKind::Other || message.visible != Visibility::Now {
            return Ok(false);
        }
        let ready = self.tables.next_number()?;
        self.tables.wake_if_waiting(instance, &message.instance, ready)
    }

    /// Makes an instance ready that waited on its route for nothing but a message.
    pub(super) fn wake(&mut self, instance: u64) -> Rows<()> {
        let ready = self.tables.next_number()?;
        self.tables.wake_instance(instance, ready)
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
        Visibility::Now => VISIBLE_AT_ONCE,
        Visibility::At(millis) => Timestamp::from_millis(millis),
        Visibility::After(delay) => Timestamp::from_millis(now.saturating_add(delay).as_millis_ceil()),
    }
}
