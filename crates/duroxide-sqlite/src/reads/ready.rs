//! Ready rows on chosen routes and lanes, to find work that no node takes.

use duroxide_provider::{
    ScheduledActivityIdentifier,
    store::{CANCELLATION, InstanceNeeds, ReadyActivity, ReadyInstance, StoreFailure},
};

use rusqlite::Row;

use crate::{
    db::{Db, TRIPLE, limit, time, triple, unsigned},
    tables::mailboxes::OLDEST,
};

const ROUTES: &str = "SELECT id, name, version, major, minor, patch FROM route";
const ON_ROUTE: &str = "SELECT ready, id, instance_id FROM instance
    WHERE route = ?1 AND ready IS NOT NULL ORDER BY ready LIMIT ?2";
const CANCELLED: &str =
    "SELECT 1 FROM message WHERE instance = ?1 AND substr(data, 1, length(?2)) = ?2 LIMIT 1";
const LANES: &str = "SELECT id, tag, activity_name FROM lane";
const IN_LANE: &str = "SELECT activity.id, instance_id, activity.execution_id, activity_id
    FROM activity JOIN instance ON instance.id = activity.instance
    WHERE lane = ?1 AND activity.ready IS NOT NULL AND session_id IS NULL ORDER BY activity.id LIMIT ?2";
const IN_LANE_OF_SESSIONS: &str = "SELECT activity.id, instance_id, activity.execution_id, activity_id
    FROM activity JOIN instance ON instance.id = activity.instance
    WHERE activity.ready IS NOT NULL AND session_id IS NOT NULL AND lane = ?1 ORDER BY activity.id LIMIT ?2";

/// Ready instances on the routes that `wanted` picks, longest ready first.
pub(crate) fn instances(
    db: &Db,
    wanted: &dyn Fn(&InstanceNeeds) -> bool,
    max: usize,
) -> Result<Vec<ReadyInstance>, StoreFailure> {
    let routes: Vec<(i64, InstanceNeeds)> = db.all(ROUTES, [], |row| {
        let needs = InstanceNeeds {
            name: row.get("name")?,
            version: row.get("version")?,
            pinned: triple(row, TRIPLE)?,
        };
        Ok((row.get("id")?, needs))
    })?;
    let mut found: Vec<(i64, i64, String, InstanceNeeds)> = Vec::new();
    for (route, needs) in routes.into_iter().filter(|(_, needs)| wanted(needs)) {
        let on_route =
            |row: &Row<'_>| Ok((row.get("ready")?, row.get("id")?, row.get("instance_id")?, needs.clone()));
        found.extend(db.all(ON_ROUTE, (route, limit(max)), on_route)?);
    }
    found.sort_unstable_by_key(|(ready, ..)| *ready);
    found.truncate(max);
    found.into_iter().map(|(_, id, instance, needs)| describe(db, id, instance, needs)).collect()
}

fn describe(db: &Db, id: i64, instance: String, needs: InstanceNeeds) -> Result<ReadyInstance, StoreFailure> {
    let since: Option<Option<i64>> = db.value(OLDEST, [id])?;
    Ok(ReadyInstance {
        instance,
        needs,
        since: since.flatten().map(time).unwrap_or_default(),
        cancel_requested: db.exists(CANCELLED, (id, CANCELLATION))?,
    })
}

/// Ready activities in the lanes that `wanted` picks, lowest first.
pub(crate) fn activities(
    db: &Db,
    wanted: &dyn Fn(&str, Option<&str>) -> bool,
    max: usize,
) -> Result<Vec<ReadyActivity>, StoreFailure> {
    let lanes: Vec<(i64, Option<String>, String)> =
        db.all(LANES, [], |row| Ok((row.get("id")?, row.get("tag")?, row.get("activity_name")?)))?;
    let mut found: Vec<(i64, ReadyActivity)> = Vec::new();
    for (lane, tag, name) in lanes.into_iter().filter(|(_, tag, name)| wanted(name, tag.as_deref())) {
        let in_lane = |row: &Row<'_>| {
            let id = ScheduledActivityIdentifier {
                instance: row.get("instance_id")?,
                execution_id: unsigned(row.get("execution_id")?),
                activity_id: unsigned(row.get("activity_id")?),
            };
            Ok((row.get("id")?, ReadyActivity { id, name: name.clone(), tag: tag.clone() }))
        };
        for sql in [IN_LANE, IN_LANE_OF_SESSIONS] {
            found.extend(db.all(sql, (lane, limit(max)), in_lane)?);
        }
    }
    found.sort_unstable_by_key(|(row, _)| *row);
    found.truncate(max);
    Ok(found.into_iter().map(|(_, activity)| activity).collect())
}
