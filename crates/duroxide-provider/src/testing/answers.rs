//! What the reads of an engine answer, as text to compare engines by.

use duroxide_core::Timestamp;

use super::items::{ORDER, VERSION};
use crate::{
    InstanceQuery,
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
