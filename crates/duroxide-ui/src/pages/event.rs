//! One event with all of its payloads.

use askama::Template;
use axum::response::Response;

use super::instance::{Described, describe};
use crate::{
    failure::Failure,
    links,
    visit::{Frame, NavEntry, Visit, show},
};

#[derive(Template)]
#[template(path = "event.html")]
struct Page {
    frame: Frame,
    id: String,
    link: String,
    execution_id: u64,
    /// The beginning of the query that links to another event of this history.
    source_query: String,
    event: Described,
}

pub(crate) async fn page(visit: Visit) -> Result<Response, Failure> {
    let id = visit.instance()?;
    let client = &visit.console.client;
    let execution = visit.query.number("execution")?;
    let execution_id = match execution {
        Some(execution) => execution,
        None => client.find_instance(id).await?.current_execution_id,
    };
    let event_id: u64 = visit.query.number("event")?.unwrap_or(1);
    let history = client.read_execution_history(id, execution_id).await?;
    let event = history.iter().find(|event| event.event_id == event_id);
    let event = event.ok_or_else(|| Failure::NotFound(format!("`{id}` has no event {event_id}.")))?;
    show(&Page {
        frame: visit.frame(NavEntry::Instances, None),
        link: format!("{}&execution={execution_id}", links::instance(id)),
        source_query: format!("id={}&execution={execution_id}&event=", links::encode(id)),
        id: id.to_owned(),
        execution_id,
        event: describe(&history, event, &visit.console.redact, usize::MAX),
    })
}
