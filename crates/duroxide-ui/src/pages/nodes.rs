//! Nodes and versions: the capabilities of each node, and whether other nodes could go on with its open instances.

mod view;

use askama::Template;
use axum::response::Response;

use crate::{
    failure::Failure,
    live,
    visit::{Frame, NavEntry, Visit, show},
};

use view::View;

#[derive(Template)]
#[template(path = "nodes.html")]
struct Page {
    frame: Frame,
    view: View,
}

pub(crate) async fn page(visit: Visit) -> Result<Response, Failure> {
    let live = live::link("overview", visit.console.overview.reads());
    let (counted, queued) = (visit.console.overview.counted().await, visit.console.overview.queued().await);
    let view = View::new(
        counted.as_ref().map(|counted| &counted.value),
        queued.as_ref().map(|queued| &queued.value),
    );
    show(&Page { frame: visit.frame(NavEntry::Nodes, Some(live)), view })
}
