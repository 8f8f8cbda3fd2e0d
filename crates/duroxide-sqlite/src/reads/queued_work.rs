//! The queued rows of one instance.

use std::collections::BTreeSet;

use duroxide_core::Timestamp;
use duroxide_provider::{
    QueuedWork,
    rules::{Lane, QueuedActivity, QueuedMessage, Route, SessionRow, WorkRows},
    store::StoreFailure,
};

use crate::{
    db::{Db, TRIPLE, number, triple, unsigned},
    tables::{activities, dead_letters, dictionary::Entry, instances, mailboxes, nodes, sessions},
};

const PINNED: &str = "SELECT major, minor, patch FROM execution WHERE instance = ?1 AND execution_id = ?2";
const MESSAGES: &str = "SELECT count(*) FROM message WHERE instance = ?1";
const ACTIVITIES: &str = "SELECT count(*) FROM activity WHERE instance = ?1";

/// Reads by the keys of the instance, its messages, activities and dead letters; `None` without any row.
pub(crate) fn read(db: &Db, instance: &str, now: Timestamp) -> Result<Option<QueuedWork>, StoreFailure> {
    let dead_letters = dead_letters::of_instance(db, instance, QueuedWork::LIMIT)?;
    let Some(row) = instances::by_id(db, instance)? else {
        return Ok(QueuedWork::of_nobody(now, dead_letters));
    };
    let id = row.number;
    let activities = with_lanes(db, activities::first(db, id, QueuedWork::LIMIT)?)?;
    let rows = WorkRows {
        route: row.route.map(|route| Route::load(db, number(route.0))).transpose()?.flatten(),
        pinned: db
            .first(PINNED, [row.number, row.execution_id].map(number), |row| triple(row, TRIPLE))?
            .flatten(),
        messages: first_messages(db, id)?,
        messages_total: total(db, MESSAGES, id)?,
        sessions: sessions_of(db, &activities)?,
        activities,
        activities_total: total(db, ACTIVITIES, id)?,
        dead_letters,
        nodes: nodes::list(db)?,
        row,
    };
    Ok(Some(rows.show(now)))
}

/// The first messages of a mailbox, and none behind the one that goes beyond the limit of bytes.
fn first_messages(db: &Db, instance: u64) -> Result<Vec<QueuedMessage>, StoreFailure> {
    let (mut bytes, mut count) = (0_usize, 0);
    let messages = db.all_while(mailboxes::ALL, [number(instance)], |row| {
        if count == QueuedWork::LIMIT || bytes > QueuedWork::BYTES_LIMIT {
            return Ok(None);
        }
        let message = mailboxes::read(row)?;
        bytes = bytes.saturating_add(message.data.len());
        count += 1;
        Ok(Some(message))
    })?;
    Ok(messages)
}

fn total(db: &Db, sql: &'static str, instance: u64) -> Result<u64, StoreFailure> {
    Ok(db.value(sql, [number(instance)])?.map(unsigned).unwrap_or_default())
}

fn sessions_of(db: &Db, activities: &[(QueuedActivity, Lane)]) -> Result<Vec<SessionRow>, StoreFailure> {
    let named: BTreeSet<&str> =
        activities.iter().filter_map(|(activity, _)| activity.session_id.as_deref()).collect();
    let mut found = Vec::new();
    for session in named {
        found.extend(sessions::get(db, session)?);
    }
    Ok(found)
}

fn with_lanes(db: &Db, activities: Vec<QueuedActivity>) -> Result<Vec<(QueuedActivity, Lane)>, StoreFailure> {
    let in_lane = |activity: QueuedActivity| {
        let lane = Lane::load(db, number(activity.lane.0))?.unwrap_or_default();
        Ok((activity, lane))
    };
    activities.into_iter().map(in_lane).collect()
}
