use duroxide_core::Timestamp;
use duroxide_provider::{
    Losses,
    store::{StartTarget, StoreFailure, token_row},
};
use rusqlite::{Row, ToSql, params_from_iter};

use super::{CONTINUED_AS_NEW, Kept};
use crate::{
    SqliteEngine,
    db::{count, micros, number, time, unsigned},
    executions::ExecutionRow,
    routes::{ORPHANS, Route},
};

const BY_ID: &str = "SELECT id, instance_id, known, name, version, parent, status, execution_id, created_at,
        updated_at, route, ready, lock_token, lock_until, batch, batch_due_at, batch_seq, suspect, wake_at, lost, blamed
    FROM instance WHERE id = ?1";
const BY_INSTANCE_ID: &str =
    "SELECT id, instance_id, known, name, version, parent, status, execution_id, created_at,
        updated_at, route, ready, lock_token, lock_until, batch, batch_due_at, batch_seq, suspect, wake_at, lost, blamed
    FROM instance WHERE instance_id = ?1";
const WITH_EXECUTION: &str =
    "SELECT i.id, i.instance_id, i.known, i.name, i.version, i.parent, i.status, i.execution_id, i.created_at,
        i.updated_at, i.route, i.ready, i.lock_token, i.lock_until, i.batch, i.batch_due_at, i.batch_seq,
        i.suspect, i.wake_at, i.lost, i.blamed,
        e.status, e.output, e.major, e.minor, e.patch, e.last_event_id, e.turns, e.started_at, e.completed_at,
        NOT EXISTS (SELECT 1 FROM custom_status c WHERE c.instance = i.id)
    FROM instance i LEFT JOIN execution e ON e.instance = i.id AND e.execution_id = i.execution_id
    WHERE i.id = ?1";
const FIRST_OF_EXECUTION: usize = 21;
const CUSTOM_STATUS_UNSET: usize = 30;
const INSERT_MAILBOX: &str = "INSERT INTO instance (id, instance_id, created_at, updated_at, route, ready)
    VALUES (?1, ?2, ?3, ?3, ?4, ?5) ON CONFLICT (instance_id) DO NOTHING";
/// What every round and every release changes. Only the indexes of what can be claimed have any of it.
macro_rules! moving_columns {
    () => {
        "execution_id = ?2, updated_at = ?3, lock_token = ?4, lock_until = ?5, batch = ?6, batch_due_at = ?7,
        batch_seq = ?8, suspect = ?9, route = ?10, ready = ?11, wake_at = ?12, lost = ?13,
        blamed = ?14"
    };
}
const MOVE: &str = concat!("UPDATE instance SET ", moving_columns!(), " WHERE id = ?1");
const CHANGE_STATUS: &str =
    concat!("UPDATE instance SET status = ?15, ", moving_columns!(), " WHERE id = ?1");
const UPDATE: &str = concat!(
    "UPDATE instance SET status = ?15, known = ?16, name = ?17, version = ?18, parent = ?19, created_at = ?20, ",
    moving_columns!(),
    " WHERE id = ?1"
);
const DELETE: &str = "DELETE FROM instance WHERE id = ?1";

/// An instance, or the mailbox of one that was never started.
#[derive(Debug, Clone)]
pub(crate) struct InstanceRow {
    /// Its incarnation: never used for another.
    pub(crate) id: i64,
    pub(crate) instance_id: String,
    /// Whether it was ever started. Everything else is a mailbox.
    pub(crate) known: bool,
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) parent: Option<String>,
    /// The status of the current execution.
    pub(crate) status: Option<String>,
    pub(crate) execution_id: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) route: Option<i64>,
    pub(crate) ready: Option<i64>,
    pub(crate) wake_at: Option<i64>,
    pub(crate) lock: Option<Lock>,
    pub(crate) batch: Option<Batch>,
    pub(crate) suspect: bool,
    pub(crate) losses: Losses,
}

/// A lease with its token. It stays after the lease ended, until someone else takes the row.
#[derive(Debug, Clone)]
pub(crate) struct Lock {
    pub(crate) token: String,
    pub(crate) until: Timestamp,
}

impl Lock {
    pub(crate) fn is_live(&self, at: Timestamp) -> bool {
        at < self.until
    }

    /// A lock out of two columns.
    pub(crate) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Self>> {
        let parts: (Option<String>, Option<i64>) = (row.get(first)?, row.get(first + 1)?);
        Ok(match parts {
            (Some(token), Some(until)) => Some(Self { token, until: time(until) }),
            _ => None,
        })
    }
}

/// What is known of lost claims, out of two columns.
pub(crate) fn read_losses(row: &Row<'_>, first: usize) -> rusqlite::Result<Losses> {
    Ok(Losses { lost: count(row.get(first)?), blamed: count(row.get(first + 1)?) })
}

/// The messages a claim took, as it is stored: all rows of this number, none of which stands behind (`last_due_at`,
/// `last_seq`). Under a negative number nothing is written to the rows while the lock lives; see [`Batch::held`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) number: i64,
    pub(crate) last_due_at: i64,
    pub(crate) last_seq: i64,
}

/// How the messages of a batch are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Their rows have the batch's number.
    Marked,
    /// It is the one row that stands at the batch's end.
    Sole,
    /// They were all that the mailbox held, and none of them had to become due: those up to the batch's end.
    Whole,
}

impl Batch {
    /// Stands for `last_due_at` where a batch was the whole mailbox.
    const WHOLE: i64 = -1;

    /// The whole mailbox, whose last message is this.
    pub(crate) fn whole(number: i64, last_seq: i64) -> Self {
        Self { number: -number, last_due_at: Self::WHOLE, last_seq }
    }

    pub(crate) fn held(self) -> Held {
        match self {
            Self { number: 0.., .. } => Held::Marked,
            Self { last_due_at: Self::WHOLE, .. } => Held::Whole,
            _ => Held::Sole,
        }
    }

    /// Whether it holds a message whose row does not say so.
    pub(crate) fn holds_unmarked(self, (due_at, seq): (i64, i64)) -> bool {
        match self.held() {
            Held::Marked => false,
            Held::Sole => (due_at, seq) == (self.last_due_at, self.last_seq),
            Held::Whole => due_at == 0 && seq <= self.last_seq,
        }
    }
}

/// What is different of an instance, beside its lock and its place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Changed {
    Nothing,
    Status,
    /// Its name, version, parent or creation, and maybe its status.
    Description,
}

/// When and by whom an instance can be claimed, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) route: Option<i64>,
    pub(crate) ready: Option<i64>,
    pub(crate) wake_at: Option<i64>,
}

impl InstanceRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let batch: (Option<i64>, Option<i64>, Option<i64>) = (row.get(14)?, row.get(15)?, row.get(16)?);
        Ok(Self {
            id: row.get(0)?,
            instance_id: row.get(1)?,
            known: row.get(2)?,
            name: row.get(3)?,
            version: row.get(4)?,
            parent: row.get(5)?,
            status: row.get(6)?,
            execution_id: unsigned(row.get(7)?),
            created_at: time(row.get(8)?),
            updated_at: time(row.get(9)?),
            route: row.get(10)?,
            ready: row.get(11)?,
            lock: Lock::read(row, 12)?,
            batch: match batch {
                (Some(number), Some(last_due_at), Some(last_seq)) => {
                    Some(Batch { number, last_due_at, last_seq })
                }
                _ => None,
            },
            suspect: row.get(17)?,
            wake_at: row.get(18)?,
            losses: read_losses(row, 19)?,
        })
    }

    pub(crate) fn is_locked(&self, at: Timestamp) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_live(at))
    }

    /// Whether this is the token of its lock, live or not.
    pub(crate) fn is_locked_by(&self, token: &str) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.token == token)
    }

    /// Whether its next execution has not begun.
    pub(crate) fn waits_for_successor(&self) -> bool {
        self.status.as_deref() == Some(CONTINUED_AS_NEW)
    }

    /// Whether it stands in line with nothing but its start.
    pub(crate) fn is_ready_to_start(&self) -> bool {
        !self.known && self.ready.is_some() && self.route != Some(ORPHANS)
    }
}

impl SqliteEngine {
    pub(crate) fn instance(&self, id: i64) -> Result<Option<InstanceRow>, StoreFailure> {
        self.db.first(BY_ID, [id], InstanceRow::read)
    }

    pub(crate) fn instance_named(&self, instance_id: &str) -> Result<Option<InstanceRow>, StoreFailure> {
        self.db.first(BY_INSTANCE_ID, [instance_id], InstanceRow::read)
    }

    /// An instance with its current execution. It is kept no longer, unless the caller keeps it again.
    pub(crate) fn instance_with_execution(&mut self, id: i64) -> Result<Option<Kept>, StoreFailure> {
        if let Some(kept) = self.kept.take(id) {
            return Ok(Some(kept));
        }
        self.db.first(WITH_EXECUTION, [id], |row| {
            Ok(Kept {
                row: InstanceRow::read(row)?,
                execution: ExecutionRow::read_joined(row, FIRST_OF_EXECUTION)?,
                waiting: None,
                parent: None,
                kv_unchanged: false,
                custom_status_unset: row.get(CUSTOM_STATUS_UNSET)?,
            })
        })
    }

    /// The row of this id; a mailbox if there is none.
    pub(crate) fn open_instance(&mut self, instance_id: &str) -> Result<InstanceRow, StoreFailure> {
        match self.instance_named(instance_id)? {
            Some(row) => Ok(row),
            None => self.insert_mailbox(instance_id),
        }
    }

    /// A mailbox that already stands in line for the start that is put into it next; `None` if there is a row of this
    /// id. Most starts are of new instances, so nothing is looked up first.
    pub(crate) fn insert_ready_mailbox(
        &mut self,
        instance_id: &str,
        start: &StartTarget,
        parent: Option<i64>,
    ) -> Result<Option<i64>, StoreFailure> {
        let (name, version) = (Some(start.name.clone()), start.version.clone());
        let route = self.route(Route { name, version, pinned: None })?;
        let (id, ready) = (self.sequence.take(), self.sequence.take());
        let columns = (id, instance_id, micros(self.now), route, ready);
        if self.db.execute(INSERT_MAILBOX, columns)? == 0 {
            return Ok(None);
        }
        let row = InstanceRow { route: Some(route), ready: Some(ready), ..self.mailbox_row(id, instance_id) };
        self.kept.keep(Kept { parent, ..Kept::new_mailbox(row) });
        Ok(Some(id))
    }

    pub(crate) fn insert_mailbox(&mut self, instance_id: &str) -> Result<InstanceRow, StoreFailure> {
        let id = self.sequence.take();
        let (route, ready) = (None::<i64>, None::<i64>);
        self.db.execute(INSERT_MAILBOX, (id, instance_id, micros(self.now), route, ready))?;
        Ok(self.mailbox_row(id, instance_id))
    }

    fn mailbox_row(&self, id: i64, instance_id: &str) -> InstanceRow {
        InstanceRow {
            id,
            instance_id: instance_id.to_owned(),
            known: false,
            name: None,
            version: None,
            parent: None,
            status: None,
            execution_id: duroxide_core::INITIAL_EXECUTION_ID,
            created_at: self.now,
            updated_at: self.now,
            route: None,
            ready: None,
            wake_at: None,
            lock: None,
            batch: None,
            suspect: false,
            losses: Losses::default(),
        }
    }

    /// The row a token belongs to, if it is the token of that row's lock.
    pub(crate) fn instance_locked_by(&self, token: &str) -> Result<Option<InstanceRow>, StoreFailure> {
        let Some(id) = token_row(token) else { return Ok(None) };
        let row = self.instance(number(id))?;
        Ok(row.filter(|row| row.is_locked_by(token)))
    }

    /// Writes an instance and where it now belongs. Columns that lists are indexed by are left alone unless they
    /// changed.
    pub(crate) fn write_instance(
        &mut self,
        row: &InstanceRow,
        place: Place,
        changed: Changed,
    ) -> Result<(), StoreFailure> {
        self.kept.forget(row.id);
        let columns: [&dyn ToSql; 20] = [
            &row.id,
            &number(row.execution_id),
            &micros(row.updated_at),
            &row.lock.as_ref().map(|lock| &lock.token),
            &row.lock.as_ref().map(|lock| micros(lock.until)),
            &row.batch.map(|batch| batch.number),
            &row.batch.map(|batch| batch.last_due_at),
            &row.batch.map(|batch| batch.last_seq),
            &row.suspect,
            &place.route,
            &place.ready,
            &place.wake_at,
            &row.losses.lost,
            &row.losses.blamed,
            &row.status,
            &row.known,
            &row.name,
            &row.version,
            &row.parent,
            &micros(row.created_at),
        ];
        let (statement, parameters) = match changed {
            Changed::Nothing => (MOVE, 14),
            Changed::Status => (CHANGE_STATUS, 15),
            Changed::Description => (UPDATE, 20),
        };
        self.db.execute(statement, params_from_iter(columns.into_iter().take(parameters))).map(|_| ())
    }

    pub(crate) fn delete_instance_row(&mut self, id: i64) -> Result<(), StoreFailure> {
        self.kept.forget(id);
        self.db.execute(DELETE, [id]).map(|_| ())
    }
}
