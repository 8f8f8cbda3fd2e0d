//! An instance as JSON and as a row.

use duroxide::InstanceInfo;
use serde_json::{Value, json};

use crate::{
    output::{Line, Table, Tone, clean},
    time::{age, iso},
};

pub(super) fn to_json(info: &InstanceInfo) -> Value {
    json!({
        "instance": info.instance_id,
        "name": info.orchestration_name,
        "version": info.orchestration_version,
        "execution": info.current_execution_id,
        "status": info.status,
        "created_at": iso(info.created_at),
        "updated_at": iso(info.updated_at),
        "parent": info.parent_instance_id,
        "output": info.output,
    })
}

pub(super) fn table(instances: &[InstanceInfo], now_ms: u64) -> Table {
    let mut table = Table::new(["INSTANCE", "STATUS", "NAME", "VERSION", "CREATED", "CHANGED", "PARENT"]);
    for info in instances {
        table.row([
            clean(&info.instance_id).into(),
            Line::toned(Tone::of_status(&info.status), info.status.clone()),
            clean(&info.orchestration_name).into(),
            clean(&info.orchestration_version).into(),
            iso(info.created_at).into(),
            format!("{} ago", age(info.updated_at, now_ms)).into(),
            clean(info.parent_instance_id.as_deref().unwrap_or_default()).into(),
        ]);
    }
    table
}
