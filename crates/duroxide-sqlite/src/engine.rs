use std::{sync::Arc, time::Duration};

use duroxide_core::Timestamp;
use duroxide_provider::{
    OrchestrationClaim, WorkClaim,
    store::{
        ActivityOrder, Answer, ApplyError, Claimed, DeadLetterNote, FailureClass, InstanceOrder, Op, Readies,
        StoreEngine, StoreFailure, TellOfWrite, bounds::MAX_ATTEMPTS_DEFAULT,
    },
};

use crate::{
    SqliteError, SqliteOptions, SqliteReader, StatementTrace,
    activities::KeptActivities,
    checkpoint::{LOG_BYTES_DUE, Log},
    db::{Db, micros, time},
    error::{commit_failure, failure},
    instances::KeptInstances,
    lanes::Lanes,
    mailbox::Fullness,
    open::{Location, open_writer},
    routes::Routes,
    sentry::Sentry,
    sequence::Sequence,
};

/// A transaction that writes takes the write lock at once: one that takes it later can meet a busy error that no
/// waiting cures (B20).
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(crate) const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const DATA_VERSION: &str = "PRAGMA data_version";
/// When the next instance, activity, session or removal is due: four seeks in one statement, since it runs after every
/// transaction. A session counts if a queued activity may wait for the end of its lease.
const NEXT_WAKE: &str = "SELECT
    (SELECT wake_at FROM instance WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
    (SELECT wake_at FROM activity WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
    (SELECT lock_until FROM session WHERE lock_until > ?1
        AND EXISTS (SELECT 1 FROM activity WHERE activity.session_id = session.session_id)
     ORDER BY lock_until LIMIT 1),
    (SELECT remove_at FROM removal_task ORDER BY remove_at LIMIT 1)";
/// Must change something: SQLite writes and syncs nothing for an update that leaves a row as it was. A number that is
/// left out does no harm.
const PROBE: &str = "UPDATE sequence SET next = next + 1 WHERE id = 1";

/// The SQLite store engine: the connection that writes, and what it keeps in memory.
#[derive(Debug)]
pub struct SqliteEngine {
    pub(crate) db: Db,
    /// The time of the transaction, or of the last one.
    pub(crate) now: Timestamp,
    /// The time of the last promotion: sessions whose lease ended by then have been looked at.
    pub(crate) promoted_at: Timestamp,
    /// The same as of the last commit.
    promoted_before: Timestamp,
    pub(crate) sequence: Sequence,
    pub(crate) routes: Routes,
    pub(crate) lanes: Lanes,
    pub(crate) kept: KeptInstances,
    pub(crate) kept_activities: KeptActivities,
    pub(crate) fullness: Fullness,
    pub(crate) max_attempts: u32,
    pub(crate) orphan_message_ttl: Duration,
    location: Location,
    options: SqliteOptions,
    pub(crate) log: Log,
    /// Rows changed before the transaction began, to tell whether it wrote.
    changes_before: u64,
    /// The state of the store that was last looked at from elsewhere, as SQLite counts the commits of other connections.
    data_version: i64,
    /// The same of what is in memory: the sequence, and the rows that are kept.
    known_version: Option<i64>,
    /// Whether the store was closed and could not be opened again yet.
    closed: bool,
    /// Whether leases that a clock set back made too long have been looked for since the store was opened.
    leases_checked: bool,
    trace: Option<Arc<StatementTrace>>,
    sentry: Sentry,
    /// Whether room for the log was made, or tried to be made, since the store was opened.
    pub(crate) has_room: bool,
}

impl SqliteEngine {
    /// Opens the store of a URL, `sqlite:path` or `sqlite::memory:`, and makes it if it is missing.
    ///
    /// # Errors
    /// A URL that names no store, or a file that cannot be one: not a database, another program's, read-only, written
    /// by a newer schema, in a missing directory. Nothing in such a file is changed.
    pub fn open(url: &str, options: SqliteOptions) -> Result<Self, SqliteError> {
        Self::open_at(Location::parse(url)?, options)
    }

    /// Opens a private store in memory.
    ///
    /// # Errors
    /// Only if SQLite itself cannot be set up.
    pub fn open_in_memory(options: SqliteOptions) -> Result<Self, SqliteError> {
        Self::open_at(Location::Memory, options)
    }

    pub(crate) fn open_at(location: Location, options: SqliteOptions) -> Result<Self, SqliteError> {
        let location = location.resolve();
        let conn = open_writer(&location, &options)?;
        let log = Log::of(&conn, &location).map_err(|error| SqliteError::from_sqlite("open", &error))?;
        let mut engine = Self {
            db: Db::new(conn),
            now: Timestamp::ZERO,
            promoted_at: Timestamp::ZERO,
            promoted_before: Timestamp::ZERO,
            sequence: Sequence::default(),
            routes: Routes::default(),
            lanes: Lanes::default(),
            kept: KeptInstances::default(),
            kept_activities: KeptActivities::default(),
            fullness: Fullness::default(),
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            orphan_message_ttl: options.orphan_message_ttl,
            location,
            options,
            log,
            changes_before: 0,
            data_version: 0,
            known_version: None,
            closed: false,
            leases_checked: false,
            trace: None,
            sentry: Sentry::default(),
            has_room: false,
        };
        engine.changed_elsewhere().map_err(|failure| SqliteError::from_failure("open", failure))?;
        Ok(engine)
    }

    /// Another connection to the same store, for reads beside the writer. `None` for a store in memory, which has one
    /// connection for everything: SQLite's shared cache answers concurrent readers with an error that no timeout cures.
    ///
    /// # Errors
    /// If the connection cannot be opened or set up.
    pub fn open_reader(&self) -> Result<Option<SqliteReader>, SqliteError> {
        match &self.location {
            Location::Memory => Ok(None),
            file @ Location::File { .. } => SqliteReader::open(file, &self.options).map(Some),
        }
    }

    /// Moves the write-ahead log into the database, as far as readers allow.
    ///
    /// # Errors
    /// If SQLite cannot read the log or write the database.
    pub fn checkpoint(&mut self) -> Result<(), StoreFailure> {
        self.log.checkpoint_now(&self.db)
    }

    /// Keeps every statement from now on, also after a reopen.
    ///
    /// # Errors
    /// None at present.
    pub fn trace_statements(&mut self) -> Result<Arc<StatementTrace>, SqliteError> {
        let trace = Arc::clone(self.trace.get_or_insert_default());
        self.db.trace_to(Some(Arc::clone(&trace)));
        Ok(trace)
    }

    /// The value of a PRAGMA on this connection.
    ///
    /// # Errors
    /// If SQLite does not know it.
    pub fn pragma(&self, name: &str) -> Result<String, SqliteError> {
        self.db.pragma(name)
    }

    /// Closes the connection before another is opened: what it remembers of the log may not be what is on disk. An
    /// empty database stands in for it, and nothing is begun on that.
    fn close(&mut self) -> Result<(), StoreFailure> {
        self.rollback();
        let stand_in = Db::empty().map_err(|error| failure(&error))?;
        self.closed = true;
        self.leases_checked = false;
        self.db = stand_in;
        Ok(())
    }

    /// Whether the log is in a file and has not reached the length at which it is checkpointed.
    pub(crate) fn log_is_short(&self) -> bool {
        self.location.log_bytes().is_some_and(|bytes| bytes < LOG_BYTES_DUE)
    }

    /// SQLite ends a transaction itself on some errors. What ran after that would run outside of any.
    fn check_open(&self) -> Result<(), StoreFailure> {
        if self.db.conn().is_autocommit() {
            return Err(StoreFailure::new(FailureClass::Retryable, "no transaction is open"));
        }
        Ok(())
    }

    fn apply_op(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        match op {
            Op::CommitRound(round) => self.commit_round(round, handed_in),
            Op::AbandonInstance { token, delay, ignore_attempt } => {
                self.abandon_instance(token, *delay, *ignore_attempt)
            }
            Op::RenewInstance { token, extend_for } => self.renew_instance(token, *extend_for, handed_in),
            Op::AckActivity { token, completion } => self.ack_activity(token, completion.as_ref(), handed_in),
            Op::AbandonActivity { token, delay, ignore_attempt } => {
                self.abandon_activity(token, *delay, *ignore_attempt)
            }
            Op::RenewActivity { token, extend_for } => self.renew_activity(token, *extend_for, handed_in),
            Op::DeadLetterActivity { token, reason } => self.dead_letter_activity(token, reason, handed_in),
            Op::EnqueueMessage(row) => {
                let begun = self.enqueue_from(None, row).map_err(ApplyError::Broken)?;
                Ok(if begun { Answer::Begun } else { Answer::Done })
            }
            Op::StartIfNew(row) => self.start_if_new(row).map_err(ApplyError::Broken),
            Op::EnqueueActivity(row) => done(self.enqueue_activity(row)),
            Op::Append { instance, execution_id, events, changes } => {
                self.append(instance, *execution_id, events, changes)
            }
            Op::RenewSessions { owners, extend_for, idle_timeout } => {
                counted(self.renew_sessions(owners, *extend_for, *idle_timeout, handed_in))
            }
            Op::CleanupSessions { idle_timeout: _ } => counted(self.clean_up_sessions()),
            Op::SetMaxAttempts(max) => {
                self.max_attempts = *max;
                Ok(Answer::Done)
            }
            Op::DeleteInstances { ids, force } => self.delete_instances(ids, *force),
            Op::DeleteTree { instance, force } => self.delete_tree(instance, *force),
            Op::DeleteBulk(filter) => self.delete_bulk(filter),
            Op::Prune { instance, options } => self.prune(instance, options),
            Op::PruneBulk { filter, options } => self.prune_bulk(filter, options),
            Op::RemoveRows { task } => self.go_on_removing(*task),
            Op::RetryDeadLetter { id } => self.retry_dead_letter(id),
            Op::DiscardDeadLetter { id } => self.discard_dead_letter(id),
            Op::JoinNode(row) => self.join_node(row),
            Op::RenewNodes { names } => self.renew_nodes(names),
            Op::EndNode { name, blamed } => self.end_node(name, blamed.as_ref()),
        }
    }

    /// Whoever else wrote, another process or somebody with a tool: what is in memory is then read again.
    fn notice_other_writers(&mut self) -> Result<(), StoreFailure> {
        let version = Some(self.read_data_version()?);
        if self.known_version != version {
            self.forget_kept();
            self.sequence.read(&self.db)?;
            self.known_version = version;
        }
        Ok(())
    }

    fn read_data_version(&self) -> Result<i64, StoreFailure> {
        Ok(self.db.first(DATA_VERSION, [], |row| row.get(0))?.unwrap_or_default())
    }

    /// What is stored may be different from what was written last.
    pub(crate) fn forget_kept(&mut self) {
        self.kept.clear();
        self.kept_activities.clear();
        self.fullness = Fullness::default();
    }
}

fn done(result: Result<(), StoreFailure>) -> Result<Answer, ApplyError> {
    result.map(|()| Answer::Done).map_err(ApplyError::Broken)
}

fn counted(result: Result<usize, StoreFailure>) -> Result<Answer, ApplyError> {
    result.map(Answer::Count).map_err(ApplyError::Broken)
}

impl StoreEngine for SqliteEngine {
    fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure> {
        if self.closed {
            return Err(StoreFailure::new(FailureClass::Retryable, "the store is being opened again"));
        }
        self.db.run(BEGIN).map_err(|error| failure(&error))?;
        self.now = now;
        // Under a clock that was set back, sessions end that had been looked at before.
        self.promoted_at = self.promoted_at.min(now);
        self.promoted_before = self.promoted_at;
        self.changes_before = self.db.conn().total_changes();
        self.notice_other_writers()?;
        if !std::mem::replace(&mut self.leases_checked, true) {
            self.shorten_leases()?;
        }
        Ok(())
    }

    fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError> {
        self.check_open()?;
        self.apply_op(op, handed_in)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        self.check_open()?;
        self.promoted_at = self.now;
        self.remove_due_rows()?;
        self.promote_activities()?;
        self.promote_instances()
    }

    fn clamp_leases(&mut self) -> Result<(), StoreFailure> {
        self.check_open()?;
        self.shorten_leases()
    }

    fn move_leases(&mut self, by: Duration) -> Result<(), StoreFailure> {
        self.check_open()?;
        self.move_live_leases(by)
    }

    fn claim_instances(
        &mut self,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        self.check_open()?;
        self.claim_ready_instances(order, nonce)
    }

    fn claim_activities(
        &mut self,
        order: &ActivityOrder,
        nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        self.check_open()?;
        self.claim_ready_activities(order, nonce)
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        self.check_open()?;
        if self.db.conn().total_changes() != self.changes_before {
            self.sequence.write(&self.db, self.now)?;
        }
        self.db.run(COMMIT).map_err(|error| commit_failure(&error))
    }

    fn rollback(&mut self) {
        if !self.db.conn().is_autocommit()
            && let Err(error) = self.db.run(ROLLBACK)
        {
            tracing::warn!(target: "duroxide::providers::sqlite", %error, "rollback failed");
        }
        // Sessions whose end was noticed in this transaction have to be noticed again.
        self.promoted_at = self.promoted_before;
        self.routes.clear();
        self.lanes.clear();
        self.known_version = None;
    }

    fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure> {
        let columns = [micros(self.promoted_at)];
        let times: Option<[Option<i64>; 4]> = self
            .db
            .first(NEXT_WAKE, columns, |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
        Ok(times.into_iter().flatten().flatten().min().map(time))
    }

    /// The number changes only through the commits of other connections.
    fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure> {
        let version = self.read_data_version()?;
        Ok(std::mem::replace(&mut self.data_version, version) != version)
    }

    /// Whoever commits writes the log first.
    fn tell_of_writes(&mut self, tell: &TellOfWrite) -> bool {
        self.location.log(self.db.conn()).is_some_and(|log| self.sentry.tell_of_write(&log, tell))
    }

    fn may_be_ready(&mut self) -> Result<Readies, StoreFailure> {
        Ok(Readies { instances: self.any_instance_ready()?, activities: self.any_activity_ready()? })
    }

    fn reopen(&mut self) -> Result<(), StoreFailure> {
        if self.location == Location::Memory {
            return Ok(());
        }
        self.close()?;
        let into_failure = |error: SqliteError| {
            let class = if error.retryable { FailureClass::Retryable } else { FailureClass::Permanent };
            StoreFailure::new(class, error.to_string())
        };
        let conn = open_writer(&self.location, &self.options).map_err(into_failure)?;
        self.log = Log::of(&conn, &self.location).map_err(|error| failure(&error))?;
        self.db = Db::new(conn);
        self.db.trace_to(self.trace.clone());
        // A commit whose sync failed may be in the log all the same. Linux takes what it could not write for clean, and no
        // later sync of the log writes it; moved into the database it is written anew.
        self.log.checkpoint_now(&self.db)?;
        self.db.run(BEGIN).map_err(|error| failure(&error))?;
        self.db.execute(PROBE, [])?;
        self.db.run(COMMIT).map_err(|error| commit_failure(&error))?;
        self.closed = false;
        Ok(())
    }

    fn maintain(&mut self) -> Result<(), StoreFailure> {
        self.log.maintain(&self.db)
    }
}
