//! Whether clients have sent as many messages to an instance as may wait there (15.3).

use std::collections::HashMap;

use duroxide_provider::store::StoreFailure;

use crate::{
    columns::columns,
    db::{Db, unsigned},
};

const NUMBER: &str = "SELECT id FROM instance WHERE instance_id = ?1";
columns!(span as span_columns:
    first = "(SELECT seq FROM message WHERE instance = ?1 AND due_at = 0 ORDER BY seq LIMIT 1)",
    last = "(SELECT seq FROM message WHERE instance = ?1 AND due_at = 0 ORDER BY seq DESC LIMIT 1)",
);
/// The lowest and the highest number of the messages that were visible at once.
const SPAN: &str = concat!("SELECT ", span_columns!());
/// Messages of clients behind a number, up to a limit: `QueuedMessage::is_from_client` in SQL.
const COUNT_BEHIND: &str = "SELECT count(*) FROM (SELECT 1 FROM message
    WHERE instance = ?1 AND due_at = 0 AND seq > ?2 AND kind > 1 AND key IS NULL LIMIT ?3)";

/// Instances of which a count is remembered. It is only kept for mailboxes that may be full.
const REMEMBERED_MAX: usize = 1_024;

/// How full mailboxes may be, as far as they were counted.
#[derive(Debug, Default)]
pub(crate) struct Fullness {
    counted: HashMap<i64, Counted>,
}

/// At some time the mailbox held at most this many messages up to this number. Later it holds at most as many up to
/// that number: messages are only ever added behind the last.
#[derive(Debug, Clone, Copy)]
struct Counted {
    at_most: u64,
    up_to: i64,
}

impl Fullness {
    /// Whether clients have this many messages in the mailbox of this id.
    pub(crate) fn is_at_least(
        &mut self,
        db: &Db,
        instance: &str,
        at_least: u64,
    ) -> Result<bool, StoreFailure> {
        if at_least == 0 {
            return Ok(true);
        }
        match db.value(NUMBER, [instance])? {
            Some(id) => self.is_at_least_of(db, id, at_least),
            None => Ok(false),
        }
    }

    /// Whether clients have this many messages in the mailbox of this row.
    ///
    /// Each message has a number of its own, so there are no more of them than numbers from the first to the last. Two
    /// seeks therefore answer for a mailbox that fills without a pause. If other instances took numbers in between, the
    /// messages are counted, and later only those that came since: each message is counted once while a mailbox fills.
    pub(crate) fn is_at_least_of(&mut self, db: &Db, id: i64, at_least: u64) -> Result<bool, StoreFailure> {
        if at_least == 0 {
            return Ok(true);
        }
        let span: Option<(Option<i64>, Option<i64>)> =
            db.first(SPAN, [id], |row| Ok((row.get(span::first)?, row.get(span::last)?)))?;
        let Some((Some(first), Some(last))) = span else { return Ok(false) };
        if numbers_between(first - 1, last) < at_least {
            return Ok(false);
        }
        if let Some(counted) = self.counted.get_mut(&id) {
            if counted.at_most.saturating_add(numbers_between(counted.up_to, last)) < at_least {
                return Ok(false);
            }
            let newer = count_behind(db, id, counted.up_to, at_least)?;
            let at_most = counted.at_most.saturating_add(newer);
            // A count that reached the limit stopped there: the messages behind it are unknown.
            if newer < at_least {
                *counted = Counted { at_most, up_to: last.max(counted.up_to) };
            }
            if at_most < at_least {
                return Ok(false);
            }
        }
        // Some of the counted messages may have been consumed since.
        let at_most = count_behind(db, id, first - 1, at_least)?;
        if at_most < at_least {
            self.remember(id, Counted { at_most, up_to: last });
        }
        Ok(at_most >= at_least)
    }

    fn remember(&mut self, id: i64, counted: Counted) {
        if self.counted.len() >= REMEMBERED_MAX {
            self.counted.clear();
        }
        self.counted.insert(id, counted);
    }
}

/// How many numbers there are behind one, up to another.
fn numbers_between(before: i64, last: i64) -> u64 {
    u64::try_from(last.saturating_sub(before)).unwrap_or_default()
}

fn count_behind(db: &Db, id: i64, before: i64, at_most: u64) -> Result<u64, StoreFailure> {
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
    Ok(db.value(COUNT_BEHIND, (id, before, limit))?.map(unsigned).unwrap_or_default())
}
