//! A store that is copied elsewhere.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::{
    memory::record::{
        ActivityRecord, DeadLetterRecord, ExecutionRecord, InstanceRecord, MessageRecord, StoredInstance,
    },
    rules::{ActivityTable as _, InstanceRow, Origin, ReadyIndex as _, Rows, Transactions as _},
    store::{ActivityRow, CopySource, IntakeRow, StoreFailure, StoreSnapshot},
};
use duroxide_store::NodeLocks as _;

use crate::{
    SqliteError, SqliteOptions,
    db::{Db, number, unsigned},
    open::{Location, open_writer},
    reads,
    tables::{
        SqliteTables, activities, dead_letters, executions, instances, intake, mailboxes, nodes,
        state::{custom_status, key_values},
    },
};

const COUNT: &str = "SELECT count(*) FROM instance";
/// Every commit of a store that changes anything writes this row.
const STATE: &str = "SELECT next || ' ' || written_at || ' ' || (SELECT count(*) FROM instance) || ' ' ||
    (SELECT coalesce(max(number), 0) FROM intake) FROM sequence WHERE id = 1";
const NEXT_NUMBER: &str = "SELECT next FROM sequence WHERE id = 1";

/// A node without a heartbeat for this long, and without a file, has ended.
const SILENT_FOR: Duration = Duration::from_secs(60);

/// A store in a SQLite file that is copied elsewhere. It holds the file's write lock, so no process writes meanwhile, and no
/// node can join.
#[derive(Debug)]
pub struct SqliteExport {
    tables: SqliteTables,
}

impl SqliteExport {
    /// Opens the file of a URL such as `sqlite:orders.db`. Call it on the thread that copies: it blocks.
    ///
    /// # Errors
    /// If the file is missing or is no store, if another connection holds its write lock for too long, or if a node
    /// runs on it.
    pub fn open(url: &str) -> Result<Self, SqliteError> {
        let location = existing(Location::parse(url)?.resolve())?;
        let db = Db::new(open_writer(&location, &SqliteOptions::default())?);
        let mut tables = SqliteTables::new(db);
        let failed = |failure: StoreFailure| failure.into_provider_error("copy");
        tables.begin().map_err(failed)?;
        for node in nodes::list(&tables.db).map_err(failed)? {
            let is_gone = match location.node_files() {
                Some(files) => files.take_over(&node.name).is_some() || is_forgotten(node.seen_at),
                None => is_forgotten(node.seen_at),
            };
            if !is_gone {
                let message = format!(
                    "node {} runs on {location}: shut it down first (a node that died on another machine counts as \
                     running for {} seconds)",
                    node.name,
                    SILENT_FOR.as_secs()
                );
                return Err(SqliteError::permanent("copy", message));
            }
        }
        Ok(Self { tables })
    }

    fn stored(&mut self, mut row: InstanceRow) -> Rows<StoredInstance> {
        let (id, name) = (number(row.number), row.id.clone());
        // The nodes that made the claims are not copied.
        if let Some(lock) = &mut row.lock {
            lock.lease.node = None;
        }
        let route = match row.route {
            Some(route) => self.tables.route(route)?,
            None => None,
        };
        let db = &self.tables.db;
        let mut stored = StoredInstance {
            executions: Vec::new(),
            messages: mailboxes::all(db, row.number)?
                .into_iter()
                .map(|row| MessageRecord { instance: name.clone(), row })
                .collect(),
            activities: Vec::new(),
            instance: InstanceRecord {
                route,
                custom_status: custom_status::read(db, id)?,
                kv: key_values::left(db, id)?,
                kv_changes: key_values::changes(db, id)?.into_iter().collect(),
                row,
            },
        };
        for (execution_id, row) in executions::all(db, unsigned(id))? {
            let events = reads::events(db, id, execution_id)?;
            stored.executions.push((ExecutionRecord { instance: name.clone(), execution_id, row }, events));
        }
        for (mut row, data) in activities::all(db, unsigned(id))? {
            if let Some(lease) = &mut row.lock {
                lease.node = None;
            }
            let lane = self.tables.lane(row.lane)?.unwrap_or_default();
            let activity = ActivityRow {
                instance: name.clone(),
                execution_id: row.execution_id,
                activity_id: row.activity_id,
                name: lane.name,
                tag: lane.tag,
                session_id: row.session_id.clone(),
                data,
                item: None,
            };
            stored.activities.push(ActivityRecord { row, activity });
        }
        Ok(stored)
    }
}

/// A copy makes no file.
fn existing(location: Location) -> Result<Location, SqliteError> {
    match location {
        Location::File { path, vfs, .. } => Ok(Location::File { path, create: false, vfs }),
        Location::Memory => Err(SqliteError::permanent("copy", "a store in memory cannot be copied")),
    }
}

/// Whether a node without a file has sent no heartbeat for so long that it has ended.
fn is_forgotten(seen_at: Timestamp) -> bool {
    let since_epoch =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::MAX);
    let now = Timestamp::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX));
    now.saturating_since(seen_at) > SILENT_FOR
}

impl CopySource for SqliteExport {
    fn state(&mut self) -> Result<String, StoreFailure> {
        Ok(self.tables.db.value(STATE, [])?.unwrap_or_default())
    }

    fn instance_count(&mut self) -> Result<u64, StoreFailure> {
        Ok(unsigned(self.tables.db.value(COUNT, [])?.unwrap_or_default()))
    }

    fn instances_after(&mut self, number: u64, max: usize) -> Result<Vec<StoredInstance>, StoreFailure> {
        let rows = instances::after(&self.tables.db, number, max)?;
        rows.into_iter().map(|row| self.stored(row)).collect()
    }

    fn dead_letters(&mut self) -> Result<Vec<DeadLetterRecord>, StoreFailure> {
        let mut records = Vec::new();
        for (number, row) in dead_letters::all(&self.tables.db)? {
            let lane = match &row.origin {
                Origin::Activity { lane, .. } => self.tables.lane(*lane)?,
                Origin::Message { .. } => None,
            };
            records.push(DeadLetterRecord { number, row, lane });
        }
        Ok(records)
    }

    fn intake(&mut self) -> Result<Vec<IntakeRow>, StoreFailure> {
        intake::all(&self.tables.db)
    }

    fn next_number(&mut self) -> Result<u64, StoreFailure> {
        Ok(unsigned(self.tables.db.value(NEXT_NUMBER, [])?.unwrap_or_default()))
    }

    fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure> {
        reads::snapshot::take(&self.tables.db, Timestamp::ZERO)
    }
}
