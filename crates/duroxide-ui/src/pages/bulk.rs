//! Changes of many instances: a preview of the affected instances, then the change of exactly these instances.

use std::collections::BTreeSet;

use askama::Template;
use axum::response::Response;
use duroxide::{Client, ClientError, InstanceInfo};

use super::{
    actions,
    instances::{Filter, Row},
};
use crate::{
    changed::Changed,
    console::Console,
    failure::Failure,
    fields::Fields,
    format,
    redact::Redact,
    visit::{Frame, NavEntry, Visit, show},
};

/// The change that is made to each instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Cancel,
    Retry,
    Delete,
}

impl Action {
    pub(crate) fn of(form: &Fields) -> Option<Self> {
        [Self::Cancel, Self::Retry, Self::Delete]
            .into_iter()
            .find(|action| Some(action.word()) == form.one("action"))
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }

    /// Why the action cannot be applied to an instance.
    fn obstacle(self, info: &InstanceInfo) -> Option<&'static str> {
        let has_ended = matches!(info.status.as_str(), "Completed" | "Failed");
        match self {
            Self::Cancel if has_ended => Some("has ended already"),
            Self::Retry if info.status != "Failed" => Some("has not failed"),
            Self::Delete if !has_ended => Some("still runs: cancel it first"),
            Self::Delete if info.parent_instance_id.is_some() => Some("is a child: delete its root"),
            Self::Cancel | Self::Retry | Self::Delete => None,
        }
    }

    async fn apply(self, client: &Client, id: &str) -> Result<(), ClientError> {
        match self {
            Self::Cancel => client.cancel_instance(id, actions::CANCEL_REASON).await,
            Self::Retry => actions::start_once_more(client, id).await.map(drop),
            Self::Delete => client.delete_instance(id, false).await.map(drop),
        }
    }
}

/// The instances that an action would change, and those it would leave out.
#[derive(Debug)]
struct Preview {
    action: &'static str,
    hit: Vec<Row>,
    spared: Vec<(Row, &'static str)>,
    /// Whether more instances match than one action may change.
    has_more: bool,
}

impl Preview {
    fn new(action: Action, chosen: &Chosen, redact: &Redact, now_ms: u64) -> Self {
        let row = |info: &InstanceInfo| Row::new(info, redact, now_ms);
        let (mut hit, mut spared) = (Vec::new(), Vec::new());
        for info in &chosen.instances {
            match action.obstacle(info) {
                None => hit.push(row(info)),
                Some(why) => spared.push((row(info), why)),
            }
        }
        Self { action: action.word(), hit, spared, has_more: chosen.has_more }
    }
}

#[derive(Template)]
#[template(path = "bulk.html")]
struct Page {
    frame: Frame,
    preview: Preview,
}

/// `POST /bulk-preview`: shows the instances that an action would change. The form has ids, or a filter and `all=yes`.
pub(crate) async fn preview(visit: Visit) -> Result<Response, Failure> {
    let action = needed(&visit.form)?;
    let chosen = choose(&visit.console, &visit.form).await?;
    let preview = Preview::new(action, &chosen, &visit.console.redact, format::now_ms());
    show(&Page { frame: visit.frame(NavEntry::Instances, None), preview })
}

/// `POST /bulk`: applies the action to the instances of the preview, and to no others.
pub(crate) async fn run(visit: Visit) -> Result<Changed, Failure> {
    let action = needed(&visit.form)?;
    let ids = ids(&visit.console, &visit.form)?;
    let mut failed = Vec::new();
    for id in &ids {
        if let Err(error) = action.apply(&visit.console.client, id).await {
            failed.push(format!("{id}: {error}"));
        }
    }
    match failed.first() {
        None => Ok(Changed::then(&visit.root, "instances", &format!("bulk-{}", action.word()))),
        Some(first) => Err(Failure::Conflict(format!(
            "Done for {} of {} instances. The first that failed is {first}",
            ids.len() - failed.len(),
            ids.len()
        ))),
    }
}

fn needed(form: &Fields) -> Result<Action, Failure> {
    let unknown = || Failure::BadRequest("`action` must be cancel, retry or delete.".to_owned());
    Action::of(form).ok_or_else(unknown)
}

struct Chosen {
    instances: Vec<InstanceInfo>,
    has_more: bool,
}

async fn choose(console: &Console, form: &Fields) -> Result<Chosen, Failure> {
    if form.one("all") == Some("yes") {
        let query = Filter::new(form, &console.limits)?.at("").query().limit(console.limits.bulk_max);
        let page = console.client.query_instances(&query).await?;
        return Ok(Chosen { instances: page.instances, has_more: page.next.is_some() });
    }
    let mut instances = Vec::new();
    for id in ids(console, form)? {
        match console.client.find_instance(&id).await {
            Ok(info) => instances.push(info),
            // The instance was deleted meanwhile.
            Err(ClientError::InstanceNotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Chosen { instances, has_more: false })
}

fn ids(console: &Console, form: &Fields) -> Result<BTreeSet<String>, Failure> {
    let ids: BTreeSet<String> = form.all("id").map(str::to_owned).collect();
    let max = console.limits.bulk_max as usize;
    if ids.is_empty() {
        return Err(Failure::BadRequest("Nothing is selected: check some instances in the list.".to_owned()));
    }
    if ids.len() > max {
        return Err(Failure::BadRequest(format!("At most {max} instances can be changed at once.")));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(status: &str, parent: Option<&str>) -> InstanceInfo {
        InstanceInfo {
            instance_id: "i".to_owned(),
            orchestration_name: "Order".to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            current_execution_id: 1,
            status: status.to_owned(),
            output: None,
            created_at: 0,
            updated_at: 0,
            parent_instance_id: parent.map(str::to_owned),
        }
    }

    #[test]
    fn a_preview_leaves_out_instances_that_cannot_change() {
        let hits = |action: Action, status, parent| action.obstacle(&info(status, parent)).is_none();
        for (status, cancel, retry, delete) in [
            ("Pending", true, false, false),
            ("Running", true, false, false),
            ("ContinuedAsNew", true, false, false),
            ("Completed", false, false, true),
            ("Failed", false, true, true),
        ] {
            assert_eq!(hits(Action::Cancel, status, None), cancel, "{status}");
            assert_eq!(hits(Action::Retry, status, None), retry, "{status}");
            assert_eq!(hits(Action::Delete, status, None), delete, "{status}");
        }
        assert!(!hits(Action::Delete, "Completed", Some("parent")));
    }
}
