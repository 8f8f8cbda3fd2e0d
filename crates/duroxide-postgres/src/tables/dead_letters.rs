//! Dead letters.

use duroxide_provider::rules::DeadLetterRow;

use super::PostgresTables;
use crate::{
    connection::{Query, parameters},
    database_error::DatabaseError,
    record::{Letter, Record},
    value::{Columns, number},
};

const DRAW: &str = "SELECT nextval('{s}.dead_letter_number') AS number FROM generate_series(1, $1::bigint)";
const LETTER: &str =
    "SELECT {columns dead_letter} FROM {s}.dead_letter WHERE dead_letter.number = $1 FOR UPDATE";
const DELETE_OF: &str = "DELETE FROM {s}.dead_letter WHERE instance_id = $1";

impl PostgresTables {
    pub(super) fn insert_dead_letter(&mut self, row: &DeadLetterRow) -> Result<u64, DatabaseError> {
        let letter = Letter { number: self.next_letter_number()?, row: row.clone() };
        let number = letter.number;
        self.set.letters.put(number, letter);
        Ok(number)
    }

    /// Draws twice as many numbers each time, because dead letters are rare, and come in groups. Numbers that a
    /// transaction does not use are for the next one: they order nothing.
    fn next_letter_number(&mut self) -> Result<u64, DatabaseError> {
        if self.letter_numbers.is_empty() {
            let drawn_before = i64::try_from(self.set.letters.rows().count()).unwrap_or(i64::MAX);
            let answers = self.send(&[Query::new(DRAW, parameters![drawn_before.max(1)])])?;
            for row in answers.iter().flatten() {
                self.letter_numbers.push_back(row.number("number")?);
            }
        }
        let none = || DatabaseError::refused("the sequence of dead letters gave no number");
        self.letter_numbers.pop_front().ok_or_else(none)
    }

    /// Takes the unused numbers of these tables.
    pub(crate) fn take_letter_numbers(&mut self, of: &mut Self) {
        self.letter_numbers.append(&mut of.letter_numbers);
    }

    pub(super) fn dead_letter(&mut self, letter: u64) -> Result<Option<DeadLetterRow>, DatabaseError> {
        if !self.set.letters.knows(&letter) {
            let answers = self.send(&[Query::new(LETTER, parameters![number(letter)])])?;
            let found = answers.iter().flatten().next().map(Letter::read).transpose()?;
            self.set.letters.learn(letter, found);
        }
        Ok(self.set.letters.get(&letter).map(|letter| letter.row.clone()))
    }

    pub(super) fn delete_dead_letter(&mut self, letter: u64) -> Result<(), DatabaseError> {
        self.set.letters.delete(&letter);
        Ok(())
    }

    pub(super) fn delete_dead_letters_of(&mut self, id: &str) -> Result<(), DatabaseError> {
        self.execute(Query::new(DELETE_OF, parameters![id.to_owned()]))?;
        self.set.letters.forget(|letter| letter.row.instance_id.as_deref() == Some(id));
        Ok(())
    }
}
