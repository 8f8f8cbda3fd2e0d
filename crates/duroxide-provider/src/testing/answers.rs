//! The answers of an engine's reads as text, to compare engines.

use duroxide_core::Timestamp;

use super::items::{ORDER, VERSION};
use crate::{
    InstanceQuery, SummaryRequest,
    store::{StoreFailure, StoreReader},
};

/// One query for each criterion, and some for several.
pub(super) fn queries(now: Timestamp) -> Vec<InstanceQuery> {
    let (all, some_time_ago) = (InstanceQuery::default, now.as_millis().saturating_sub(20_000));
    vec![
        all(),
        all().status("Running"),
        all().status(InstanceQuery::PENDING),
        all().status(InstanceQuery::PENDING).roots_only().updated_from(some_time_ago),
        all().status("Completed").roots_only(),
        all().orchestration_name(ORDER),
        all().orchestration_version(VERSION),
        all().id_prefix("i"),
        all().id_prefix("i1").status("Running"),
        all().parent("i1"),
        all().created_from(some_time_ago),
        all().created_before(some_time_ago),
        all().updated_from(some_time_ago).status("Running"),
        all().updated_before(some_time_ago).roots_only(),
    ]
}

/// All that a query selects, in pages of two. Row numbers differ between engines and are left out.
pub(super) fn pages(
    reader: &mut dyn StoreReader,
    query: &InstanceQuery,
) -> Result<Vec<String>, StoreFailure> {
    let mut seen = Vec::new();
    let mut below = None;
    loop {
        let page = reader.select_instances(query, below, 2)?;
        let Some(last) = page.last() else { return Ok(seen) };
        below = Some(last.row);
        seen.extend(page.iter().map(|selected| format!("{:?}", selected.info)));
    }
}

/// Both summaries. The route of a locked instance is that of its claim, which the rows may not have any more; so locked
/// instances are compared by their number. Of several running ones that began in one millisecond any may be the oldest.
pub(super) fn summaries(reader: &mut dyn StoreReader, now: Timestamp) -> Result<String, StoreFailure> {
    let from_ms = now.as_millis().saturating_sub(20_000);
    let mut instances = reader.instance_summary(&SummaryRequest { from_ms, bucket_ms: 5_000, buckets: 4 })?;
    let oldest_at = instances.oldest_running.take().map(|(_, at)| at);
    let mut queues = reader.queue_summary(now)?;
    let locked: u64 = queues.orchestrations.iter_mut().map(|route| std::mem::take(&mut route.locked)).sum();
    queues.orchestrations.retain(|route| route.ready > 0);
    Ok(format!("{instances:?} {oldest_at:?}\n{queues:?} {locked}\n"))
}

pub(super) fn instance_reads(reader: &mut dyn StoreReader, id: &str) -> Result<String, StoreFailure> {
    let mut seen = format!(
        "{id}: {:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n",
        reader.instance_info(id)?,
        reader.status(id)?,
        reader.descriptor(id)?,
        reader.children(id)?,
        reader.kv_values(id)?,
        reader.stats(id)?,
    );
    for execution in reader.executions(id)? {
        let info = reader.execution_info(id, execution)?;
        seen += &format!("{info:?} {:?}\n", reader.last_event_id(id, execution)?);
    }
    let current = reader.current_execution(id)?;
    Ok(seen + &format!("{current:?} {:?}\n", reader.load(id, current.unwrap_or(1))?))
}
