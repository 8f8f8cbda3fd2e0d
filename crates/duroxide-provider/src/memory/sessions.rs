//! Leases of sessions.

use std::{collections::BTreeSet, ops::Bound};

use duroxide_core::Timestamp;

use super::table::{Index, Table, refile};
use crate::rules::SessionRow;

pub(super) type Sessions = Table<String, SessionRow, SessionIndex>;

#[derive(Debug, Clone, Default)]
pub(super) struct SessionIndex {
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
    pub(super) fn of_owner(&self, owner: &str) -> impl Iterator<Item = &SessionRow> {
        let sessions = self.index().by_owner.range((owner.to_owned(), String::new())..);
        let of_owner = sessions.take_while(move |(of, _)| of == owner);
        of_owner.filter_map(|(_, id)| self.get(id))
    }

    pub(super) fn ended(&self, now: Timestamp) -> impl Iterator<Item = &String> {
        self.index().ends.iter().take_while(move |(until, _)| *until <= now).map(|(_, id)| id)
    }

    /// The leases that end after this time, by their end.
    pub(super) fn ends_after(&self, time: Timestamp) -> impl Iterator<Item = &(Timestamp, String)> {
        let ends = self.index().ends.range((Bound::Excluded((time, String::new())), Bound::Unbounded));
        ends.skip_while(move |(until, _)| *until == time)
    }
}
