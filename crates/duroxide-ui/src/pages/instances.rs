//! The list of instances: filters in the URL, stable pages, bulk actions.

mod filter;
mod view;

use std::hash::{DefaultHasher, Hash, Hasher};

use askama::Template;
use axum::response::Response;
use duroxide::{ClientError, InstancePage};

use crate::{
    console::Console,
    failure::Failure,
    fields::Fields,
    format, live,
    visit::{Frame, NavEntry, Visit, show},
};

pub(crate) use filter::Filter;
use view::View;
pub(crate) use view::{Row, status_class};

#[derive(Template)]
#[template(path = "instances.html")]
struct Page {
    frame: Frame,
    view: View,
}

pub(crate) async fn page(visit: Visit) -> Result<Response, Failure> {
    let filter = Filter::new(&visit.query, &visit.console.limits)?;
    let found = read(&visit.console, &filter).await?;
    let view = View::new(&found, &filter, &visit.console.redact, format::now_ms());
    let live = format!("{}&{}", live::link("instances", hashed(&found)), filter.to_query());
    show(&Page { frame: visit.frame(NavEntry::Instances, Some(live)), view })
}

/// A page of instances. An instance whose id equals the search text comes first, before other ids that begin with it.
async fn read(console: &Console, filter: &Filter) -> Result<InstancePage, Failure> {
    let query = filter.query();
    let mut found = console.client.query_instances(&query).await?;
    let (Some(id), None) = (&query.id_prefix, &query.cursor) else { return Ok(found) };
    match console.client.find_instance(id).await {
        Ok(exact) if query.matches(&exact) => {
            found.instances.retain(|other| other.instance_id != exact.instance_id);
            found.instances.insert(0, exact);
        }
        Ok(_) | Err(ClientError::InstanceNotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(found)
}

/// A fingerprint that changes when the page would show something else.
pub(crate) async fn fingerprint(console: &Console, query: &Fields) -> Result<u64, Failure> {
    let filter = Filter::new(query, &console.limits)?;
    Ok(hashed(&read(console, &filter).await?))
}

fn hashed(found: &InstancePage) -> u64 {
    let mut hasher = DefaultHasher::new();
    for info in &found.instances {
        (&info.instance_id, &info.status, info.updated_at, info.current_execution_id).hash(&mut hasher);
    }
    hasher.finish()
}
