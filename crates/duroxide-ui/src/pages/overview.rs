//! The overview: counts of instances, starts and ends over time, queued work, and nodes.

mod view;

use askama::Template;
use axum::response::Response;

use crate::{
    changed::Changed,
    failure::Failure,
    format, live,
    visit::{Frame, NavEntry, Visit, show},
};

use view::{Range, View};

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    frame: Frame,
    view: View,
}

/// Redirects from the address that a service nests the console under. It may or may not end with a slash, so links
/// cannot be relative to it.
pub(crate) async fn from_root(visit: Visit) -> Changed {
    Changed::to(&visit.root, "overview")
}

pub(crate) async fn page(visit: Visit) -> Result<Response, Failure> {
    let console = &visit.console;
    let range = Range::of(visit.query.one("range"));
    let live = live::link("overview", console.overview.reads());
    let (counted, queued) = (console.overview.counted().await, console.overview.queued().await);
    let pending = console.client.count_pending_instances().await?;
    let view = View::new(counted.as_deref(), queued.as_deref(), pending, range, format::now_ms());
    show(&Page { frame: visit.frame(NavEntry::Overview, Some(live)), view })
}
