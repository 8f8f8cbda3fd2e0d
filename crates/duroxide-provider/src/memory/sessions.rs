use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use duroxide_core::Timestamp;

use crate::SessionFetchConfig;

/// Sessions: each is leased to one owner at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions {
    rows: BTreeMap<String, Session>,
    /// When leases end.
    wake: BTreeSet<(Timestamp, String)>,
}

#[derive(Debug, Clone)]
struct Session {
    owner: String,
    until: Timestamp,
    /// The length of its lease when it was given or last renewed.
    lease: Duration,
    last_activity: Timestamp,
}

/// Who may take an activity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// Anyone: it belongs to no session.
    Anyone,
    /// Anyone who takes sessions: no live lease holds its session.
    AnyOwner,
    /// The owner of its session.
    Owner(String),
}

impl Holder {
    pub(super) fn admits(&self, session: Option<&SessionFetchConfig>) -> bool {
        match (self, session) {
            (Self::Anyone, _) | (Self::AnyOwner, Some(_)) => true,
            (Self::Owner(owner), Some(session)) => *owner == session.owner_id,
            (Self::AnyOwner | Self::Owner(_), None) => false,
        }
    }
}

impl Sessions {
    pub(super) fn holder(&self, session: Option<&str>, now: Timestamp) -> Holder {
        let Some(session) = session else { return Holder::Anyone };
        match self.rows.get(session).filter(|row| now < row.until) {
            Some(row) => Holder::Owner(row.owner.clone()),
            None => Holder::AnyOwner,
        }
    }

    /// Leases a session to whoever fetched one of its activities.
    pub(super) fn claim(&mut self, session: &str, by: &SessionFetchConfig, now: Timestamp) {
        let until = now.saturating_add(by.lock_timeout);
        self.remove(session);
        let row = Session { owner: by.owner_id.clone(), until, lease: by.lock_timeout, last_activity: now };
        self.rows.insert(session.to_owned(), row);
        self.wake.insert((until, session.to_owned()));
    }

    /// An activity of the session was renewed or acked.
    pub(super) fn touch(&mut self, session: &str, now: Timestamp) {
        if let Some(row) = self.rows.get_mut(session) {
            row.last_activity = now;
        }
    }

    /// Extends the live sessions of these owners that are not idle; returns their names.
    pub(super) fn renew(
        &mut self,
        owners: &[String],
        live_at: Timestamp,
        lease: Duration,
        idle_timeout: Duration,
        now: Timestamp,
    ) -> Vec<String> {
        let until = now.saturating_add(lease);
        let mut renewed = Vec::new();
        for (name, row) in &mut self.rows {
            let idle = row.last_activity.saturating_add(idle_timeout) <= now;
            if owners.contains(&row.owner) && live_at < row.until && !idle {
                self.wake.remove(&(row.until, name.clone()));
                self.wake.insert((until, name.clone()));
                row.until = until;
                row.lease = lease;
                renewed.push(name.clone());
            }
        }
        renewed
    }

    /// Ends the live sessions of these owners; returns their names.
    pub(super) fn end_of(&mut self, owners: &[String], now: Timestamp) -> Vec<String> {
        let mut ended = Vec::new();
        for (name, row) in &mut self.rows {
            if owners.contains(&row.owner) && now < row.until {
                self.wake.remove(&(row.until, name.clone()));
                row.until = now;
                ended.push(name.clone());
            }
        }
        ended
    }

    /// Shortens leases that a clock that was set back made too long, and idles no later than now; returns the names
    /// of the sessions that are live.
    pub(super) fn clamp(&mut self, now: Timestamp) -> Vec<String> {
        let mut live = Vec::new();
        for (name, row) in &mut self.rows {
            row.last_activity = row.last_activity.min(now);
            if row.until > now {
                self.wake.remove(&(row.until, name.clone()));
                row.until = row.until.min(now.saturating_add(row.lease));
                self.wake.insert((row.until, name.clone()));
                live.push(name.clone());
            }
        }
        live
    }

    /// Moves leases that were live before the clock was set forward by this much, and the times of their last activity;
    /// returns the names of those sessions.
    pub(super) fn move_by(&mut self, now: Timestamp, by: Duration) -> Vec<String> {
        let mut moved = Vec::new();
        for (name, row) in &mut self.rows {
            if row.until.saturating_add(by) > now {
                self.wake.remove(&(row.until, name.clone()));
                row.until = row.until.saturating_add(by).min(now.saturating_add(row.lease));
                row.last_activity = row.last_activity.saturating_add(by).min(now);
                self.wake.insert((row.until, name.clone()));
                moved.push(name.clone());
            }
        }
        moved
    }

    /// Deletes ended sessions that no queued activity needs; returns how many.
    pub(super) fn clean_up(&mut self, now: Timestamp, is_needed: impl Fn(&str) -> bool) -> usize {
        let ended = |(name, row): &(&String, &Session)| row.until <= now && !is_needed(name);
        let names: Vec<String> = self.rows.iter().filter(ended).map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.remove(name));
        names.len()
    }

    /// Takes note of a session whose lease has ended by now; returns its name.
    pub(super) fn pop_ended(&mut self, now: Timestamp) -> Option<String> {
        self.wake.first().filter(|(until, _)| *until <= now)?;
        self.wake.pop_first().map(|(_, name)| name)
    }

    /// When the next lease ends.
    pub(super) fn next_end(&self) -> Option<Timestamp> {
        self.wake.first().map(|(until, _)| *until)
    }

    fn remove(&mut self, session: &str) {
        if let Some(row) = self.rows.remove(session) {
            self.wake.remove(&(row.until, session.to_owned()));
        }
    }
}
