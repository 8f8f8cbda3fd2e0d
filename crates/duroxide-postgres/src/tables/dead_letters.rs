//! Dead letters.

use std::collections::BTreeSet;

use duroxide_provider::rules::{DeadLetterRow, Origin};
use tokio_postgres::Row;

use super::{
    PostgresTables,
    load::{Meaning, NamedInstances, Request},
    numbers,
};
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::{ActivityKey, Letter, read_all},
    value::{Columns, limit},
};

const DRAW: &str = "SELECT nextval('{s}.dead_letter_number') AS number FROM generate_series(1, $1::bigint)";
const LETTERS: &str = "SELECT {columns dead_letter} FROM {s}.dead_letter
    WHERE dead_letter.number = ANY ($1::bigint[]) ORDER BY dead_letter.number FOR UPDATE";
const DELETE_OF: &str = "DELETE FROM {s}.dead_letter WHERE instance_id = ANY ($1::text[])";

/// How many numbers are drawn at most. Those that a transaction does not use are for the next one: they order nothing.
const NUMBERS_MAX: usize = 1_000;

impl Request {
    pub(super) fn letters(letters: &BTreeSet<u64>) -> Self {
        Self::new(Meaning::Letters(letters.clone()), LETTERS, parameters![numbers(letters)])
    }
}

impl PostgresTables {
    pub(super) fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Result<u64, DatabaseError> {
        let letter = Letter { number: self.next_letter_number()?, row: row.clone() };
        let number = letter.number;
        self.set.letters.put(number, letter);
        Ok(number)
    }

    /// Dead letters come in groups, so this draws a number for each message and activity in the working set that this process did
    /// not make itself. Their mailboxes may be empty then: whether they have activities is read in the same round trip.
    fn next_letter_number(&mut self) -> Result<u64, DatabaseError> {
        if self.letter_numbers.is_empty() {
            let messages = self.set.messages.rows().filter(|message| message.queued.item.is_none()).count();
            let activities = self.set.activities.rows().filter(|activity| activity.item.is_none()).count();
            let wanted = messages.saturating_add(activities).clamp(1, NUMBERS_MAX);
            let numbers = Request::new(Meaning::LetterNumbers, DRAW, parameters![limit(wanted)]);
            self.load(vec![numbers, self.activities_of_mailboxes(None)])?;
        }
        let none = || DatabaseError::refused("the sequence of dead letters gave no number");
        self.letter_numbers.pop_front().ok_or_else(none)
    }

    pub(super) fn add_letter_numbers(&mut self, rows: &[Row]) -> Result<(), DatabaseError> {
        for row in rows {
            self.letter_numbers.push_back(row.number("number")?);
        }
        Ok(())
    }

    /// Takes the unused numbers of these tables.
    pub(crate) fn take_letter_numbers(&mut self, of: &mut Self) {
        self.letter_numbers.append(&mut of.letter_numbers);
    }

    pub(super) fn dead_letter(&mut self, letter: u64) -> Result<Option<DeadLetterRow>, DatabaseError> {
        if !self.set.letters.knows(&letter) {
            self.ask_requests([Request::letters(&[letter].into())])?;
        }
        Ok(self.set.letters.get(&letter).map(|letter| letter.row.clone()))
    }

    pub(super) fn take_letters(&mut self, asked: BTreeSet<u64>, rows: &[Row]) -> Result<(), DatabaseError> {
        for letter in read_all::<Letter>(rows)? {
            self.set.letters.learn(letter.number, Some(letter));
        }
        asked.into_iter().for_each(|number| self.set.letters.learn(number, None));
        Ok(())
    }

    /// Loads the instances to which these letters go back, and then their activities of the same keys.
    pub(super) fn load_origins(&mut self, letters: &BTreeSet<u64>) -> Result<(), DatabaseError> {
        let rows = letters.iter().filter_map(|number| Some(&self.set.letters.get(number)?.row));
        let unknown = rows.filter_map(|row| row.instance_id.clone());
        let ids: BTreeSet<String> = unknown.filter(|id| !self.set.ids.contains_key(id)).collect();
        if !ids.is_empty() {
            self.load_instances(&NamedInstances { ids, ..NamedInstances::default() })?;
        }
        let key = |row: &DeadLetterRow| {
            let Origin::Activity { execution_id, activity_id, .. } = row.origin else { return None };
            let instance = self.set.ids.get(row.instance_id.as_ref()?).copied().flatten()?;
            Some((instance, execution_id, activity_id))
        };
        let rows = letters.iter().filter_map(|number| Some(&self.set.letters.get(number)?.row));
        let keys: BTreeSet<ActivityKey> = rows.filter_map(key).collect();
        if keys.is_empty() {
            return Ok(());
        }
        self.load(vec![Request::activities_by_key(&keys)])
    }

    pub(super) fn delete_dead_letter(&mut self, letter: u64) -> Result<(), DatabaseError> {
        self.set.letters.delete(&letter);
        Ok(())
    }

    pub(super) fn delete_dead_letters_of(&mut self, ids: &[String]) -> Result<(), DatabaseError> {
        let is_of = |letter: &&Letter| letter.row.instance_id.as_ref().is_some_and(|id| ids.contains(id));
        let here: Vec<u64> = self.set.letters.rows().filter(is_of).map(|letter| letter.number).collect();
        here.iter().for_each(|letter| self.set.letters.delete(letter));
        self.write_later(Query::new(DELETE_OF, parameters![ids.to_vec()]))
    }
}
