//! [`View`]: the list as it is shown.

use duroxide::{InstanceInfo, InstancePage};

use super::Filter;
use crate::{
    PayloadKind,
    format::{self, Moment},
    links,
    redact::Redact,
};

/// The statuses that a filter offers.
const STATUSES: [&str; 5] = ["Pending", "Running", "Completed", "Failed", "ContinuedAsNew"];

#[derive(Debug)]
pub(super) struct View {
    pub(super) rows: Vec<Row>,
    pub(super) filter: Filter,
    pub(super) statuses: [&'static str; 5],
    /// The query of the next page.
    pub(super) next: Option<String>,
    /// The query of the first page, unless this is the first page.
    pub(super) first: Option<String>,
    pub(super) is_filtered: bool,
}

/// An instance in a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) link: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) status: String,
    pub(crate) class: &'static str,
    pub(crate) created: Moment,
    pub(crate) updated: Moment,
    /// The error of a failed instance.
    pub(crate) error: Option<String>,
}

impl View {
    pub(super) fn new(page: &InstancePage, filter: &Filter, redact: &Redact, now_ms: u64) -> Self {
        let rows = page.instances.iter().map(|info| Row::new(info, redact, now_ms)).collect();
        Self {
            rows,
            statuses: STATUSES,
            next: page.next.as_ref().map(|next| filter.at(next).to_query()),
            first: (!filter.cursor.is_empty()).then(|| filter.at("").to_query()),
            is_filtered: !filter.fields().is_empty(),
            filter: filter.clone(),
        }
    }
}

impl Row {
    pub(crate) fn new(info: &InstanceInfo, redact: &Redact, now_ms: u64) -> Self {
        let id = &info.instance_id;
        let failed = (info.status == "Failed").then_some(info.output.as_deref()).flatten();
        let shown = |text| redact.shown(id, PayloadKind::Error, &info.orchestration_name, text);
        Self {
            link: links::instance(id),
            id: id.clone(),
            name: info.orchestration_name.clone(),
            version: info.orchestration_version.clone(),
            class: status_class(&info.status),
            status: info.status.clone(),
            created: Moment::new(info.created_at, now_ms),
            updated: Moment::new(info.updated_at, now_ms),
            error: failed.map(|text| format::one_line(&shown(text), 200)),
        }
    }
}

/// The style of a status.
pub(crate) fn status_class(status: &str) -> &'static str {
    match status {
        "Running" => "running",
        "Completed" => "completed",
        "Failed" => "failed",
        "Pending" => "pending",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Limits, fields::Fields};

    fn info(id: &str, status: &str, output: Option<&str>) -> InstanceInfo {
        InstanceInfo {
            instance_id: id.to_owned(),
            orchestration_name: "Order".to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            current_execution_id: 1,
            status: status.to_owned(),
            output: output.map(str::to_owned),
            created_at: 0,
            updated_at: 60_000,
            parent_instance_id: None,
        }
    }

    #[test]
    fn only_failures_show_their_output_and_only_redacted() {
        let redact =
            Redact::with(Arc::new(|payload| payload.text.contains("card").then(|| "***".to_owned())));
        let row = |status, output| Row::new(&info("a/b", status, Some(output)), &redact, 120_000);
        assert_eq!(row("Completed", "card 42").error, None);
        assert_eq!(row("Failed", "card 42").error.as_deref(), Some("***"));
        assert_eq!(row("Failed", "no stock").error.as_deref(), Some("no stock"));
        assert_eq!(row("Failed", "").link, "instance?id=a%2Fb");
        assert_eq!(row("Failed", "").updated.relative, "1 min ago");
    }

    #[test]
    fn pages_keep_their_criteria() {
        let limits = Limits::default();
        let page = |next: Option<&str>, query: &str| {
            let filter = Filter::new(&Fields::parse(query.as_bytes()), &limits).unwrap();
            let page = InstancePage { instances: Vec::new(), next: next.map(str::to_owned) };
            View::new(&page, &filter, &Redact::default(), 0)
        };
        let first = page(Some("7"), "status=Failed");
        assert_eq!(first.next.as_deref(), Some("status=Failed&cursor=7"));
        assert_eq!(first.first, None);
        let last = page(None, "status=Failed&cursor=7");
        assert_eq!((last.next, last.first.as_deref()), (None, Some("status=Failed")));
    }
}
