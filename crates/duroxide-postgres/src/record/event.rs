//! Events.

use super::record;
use crate::value::Columns;

/// An event of an execution.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) instance: u64,
    pub(crate) execution_id: u64,
    pub(crate) event_id: u64,
    pub(crate) data: String,
}

record!(Event, "history", |it| {
    Key instance: Int = it.instance;
    Key execution_id: Int = it.execution_id;
    Key event_id: Int = it.event_id;
    Mutable data: Text = &it.data;
}, |row| {
    Ok(Event {
        instance: row.number("instance")?,
        execution_id: row.number("execution_id")?,
        event_id: row.number("event_id")?,
        data: row.column("data")?,
    })
});
