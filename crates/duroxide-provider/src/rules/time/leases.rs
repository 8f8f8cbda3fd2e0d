//! Leases under a clock that was set: back, and they end later than they can; forward, and they end before their time.

use std::time::Duration;

use duroxide_core::Timestamp;

use crate::rules::{InstanceChange, Lease, Rows, Rules, Tables};

impl<T: Tables> Rules<T> {
    /// The clock was set back: shortens every lease that would end later than its length from now, so that locks do not
    /// last until the clock has caught up. Ended leases stay ended.
    pub(in crate::rules) fn shorten_long_leases(&mut self) -> Rows<()> {
        let now = self.now;
        for mut row in self.tables.leased_instances(now)? {
            // The lease of an instance that can be claimed has ended, and must not become live again.
            let ended = row.ready_number().is_some();
            if row.lock.as_mut().is_some_and(|lock| shorten(&mut lock.lease, ended, now)) {
                self.settle_with(row, InstanceChange::Lock)?;
            }
        }
        for mut activity in self.tables.leased_activities(now)? {
            let ended = activity.is_ready();
            if activity.lock.as_mut().is_some_and(|lease| shorten(lease, ended, now)) {
                self.settle_activity(activity)?;
            }
        }
        for mut session in self.tables.leased_sessions(None, now)? {
            session.until = session.until.min(now.saturating_add(session.length));
            session.last_activity_at = session.last_activity_at.min(now);
            self.tables.write_session(&session)?;
        }
        Ok(())
    }

    /// The clock was set forward by this much: lets every lease that was live before end that much later, at most one lease
    /// from now, because for their holders no time has passed. Items that can already be claimed stay ready. Sessions move
    /// too, and the times at which nodes were last seen; timers and delays do not.
    pub(in crate::rules) fn move_live_leases(&mut self, by: Duration) -> Rows<()> {
        let now = self.now;
        let before = now.saturating_sub(by);
        for mut row in self.tables.leased_instances(before)? {
            if row.ready_number().is_none() {
                row.lock.iter_mut().for_each(|lock| shift(&mut lock.lease, now, by));
                self.settle_with(row, InstanceChange::Lock)?;
            }
        }
        for mut activity in self.tables.leased_activities(before)? {
            if !activity.is_ready() {
                activity.lock.iter_mut().for_each(|lease| shift(lease, now, by));
                self.settle_activity(activity)?;
            }
        }
        for mut session in self.tables.leased_sessions(None, before)? {
            session.until = session.until.saturating_add(by).min(now.saturating_add(session.length));
            session.last_activity_at = session.last_activity_at.saturating_add(by).min(now);
            self.tables.write_session(&session)?;
        }
        for node in self.tables.nodes()? {
            self.tables.set_node_seen(node.id, node.seen_at.saturating_add(by).min(now))?;
        }
        Ok(())
    }
}

/// Ends a lease that must not live again, or shortens one that is too long. Returns whether it changed.
fn shorten(lease: &mut Lease, ended: bool, now: Timestamp) -> bool {
    let latest = if ended { now } else { now.saturating_add(lease.length) };
    let changes = latest < lease.until;
    lease.until = lease.until.min(latest);
    changes
}

fn shift(lease: &mut Lease, now: Timestamp, by: Duration) {
    lease.until = lease.until.saturating_add(by).min(now.saturating_add(lease.length));
}
