//! The page of an instance: why it does not move, its calls over time, its history, its family and state, and actions.

mod family;
mod hints;
mod history;
mod queued;
mod read;
mod view;

use std::hash::{DefaultHasher, Hash, Hasher};

use askama::Template;
use axum::response::Response;

use crate::{
    console::Console,
    failure::Failure,
    links, live,
    visit::{Frame, NavEntry, Visit, show},
};

pub(crate) use history::{Described, describe};
use view::View;

#[derive(Template)]
#[template(path = "instance.html")]
struct Page {
    frame: Frame,
    view: View,
}

pub(crate) async fn page(visit: Visit) -> Result<Response, Failure> {
    let id = visit.instance()?;
    let seen = fingerprint(&visit.console, id).await?;
    let live = format!("{}&id={}", live::link("instance", seen), links::encode(id));
    let read = read::read(&visit.console, id, visit.query.number("execution")?).await?;
    let view = View::new(&read, visit.query.number("page")?, &visit.console);
    show(&Page { frame: visit.frame(NavEntry::Instances, Some(live)), view })
}

/// A fingerprint that changes when the page would show something else.
pub(crate) async fn fingerprint(console: &Console, id: &str) -> Result<u64, Failure> {
    let info = console.client.find_instance(id).await?;
    let mut hasher = DefaultHasher::new();
    (&info.status, info.updated_at, info.current_execution_id).hash(&mut hasher);
    if let Some(queued) = console.client.read_queued_work(id).await? {
        (queued.attempts, queued.messages_total, queued.activities_total).hash(&mut hasher);
        let activities = queued.activities.iter();
        activities.for_each(|activity| (activity.attempts, activity.lock.is_some()).hash(&mut hasher));
    }
    Ok(hasher.finish())
}
