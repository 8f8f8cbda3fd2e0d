//! Leases of sessions.

use std::{collections::BTreeSet, ops::Bound};

use duroxide_core::Timestamp;

use super::{
    MemoryTables,
    table::{Index, Table, refile},
};
use crate::rules::{Rows, SessionRow, SessionTable};

pub(in crate::memory) type Sessions = Table<String, SessionRow, SessionIndex>;

#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct SessionIndex {
    by_owner: BTreeSet<(String, String)>,
    ends: BTreeSet<(Timestamp, String)>,
}

impl Index<String, SessionRow> for SessionIndex {
    fn file(&mut self, id: &String, before: Option<&SessionRow>, after: Option<&SessionRow>) {
        let owner = |row: &SessionRow| (row.owner.clone(), id.clone());
        refile(&mut self.by_owner, before.map(owner), after.map(owner));
        let end = |row: &SessionRow| (row.until, id.clone());
        refile(&mut self.ends, before.map(end), after.map(end));
    }
}

impl Sessions {
    /// The sessions of an owner, by id.
    pub(in crate::memory) fn of_owner(&self, owner: &str) -> impl Iterator<Item = &SessionRow> {
        let sessions = self.index().by_owner.range((owner.to_owned(), String::new())..);
        let of_owner = sessions.take_while(move |(of, _)| of == owner);
        of_owner.filter_map(|(_, id)| self.get(id))
    }

    pub(in crate::memory) fn ended(&self, now: Timestamp) -> impl Iterator<Item = &String> {
        self.index().ends.iter().take_while(move |(until, _)| *until <= now).map(|(_, id)| id)
    }

    /// The leases that end after this time, by their end.
    pub(in crate::memory) fn ends_after(
        &self,
        time: Timestamp,
    ) -> impl Iterator<Item = &(Timestamp, String)> {
        let ends = self.index().ends.range((Bound::Excluded((time, String::new())), Bound::Unbounded));
        ends.skip_while(move |(until, _)| *until == time)
    }
}

impl SessionTable for MemoryTables {
    fn session(&mut self, id: &str) -> Rows<Option<SessionRow>> {
        Ok(self.sessions.get(&id.to_owned()).cloned())
    }

    fn write_session(&mut self, session: &SessionRow) -> Rows<()> {
        self.sessions.put(session.id.clone(), session.clone());
        Ok(())
    }

    fn touch_session(&mut self, id: &str, now: Timestamp) -> Rows<()> {
        self.sessions.update(&id.to_owned(), |session| session.last_activity_at = now);
        Ok(())
    }

    fn leased_sessions(&mut self, owner: Option<&str>, after: Timestamp) -> Rows<Vec<SessionRow>> {
        let of_owner = owner.map(|owner| self.sessions.of_owner(owner));
        let all = owner.is_none().then(|| self.sessions.iter().map(|(_, session)| session));
        let sessions = of_owner.into_iter().flatten().chain(all.into_iter().flatten());
        Ok(sessions.filter(|session| session.until > after).cloned().collect())
    }

    fn delete_ended_sessions(&mut self, now: Timestamp) -> Rows<usize> {
        let ended = self.sessions.ended(now).filter(|id| !self.activities.are_in_session(id));
        let ended: Vec<String> = ended.cloned().collect();
        Ok(self.sessions.remove_all(&ended))
    }
}
