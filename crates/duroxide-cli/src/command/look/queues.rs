//! `queues`: the work that waits, the capability it needs, and since when.

use clap::Args;
use duroxide::{
    QueueSummary,
    providers::{LaneSummary, RouteSummary},
};
use serde_json::json;

use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Line, Table, Text, Tone, clean},
    time::{age, iso},
};

/// `queues`
#[derive(Debug, Args)]
pub struct Queues {}

impl Queues {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let queues = store.client.summarize_queues().await?;
        let ids = queues.activities.iter().map(|lane| lane.name.clone()).collect();
        let text = describe(Text::default(), &queues).line(timers(&queues));
        context.out.print(&Answer { text, json: json!(queues), ids })?;
        Ok(Exit::Done)
    }
}

/// Both queues as tables.
pub(super) fn describe(text: Text, queues: &QueueSummary) -> Text {
    let mut routes = Table::new(["ORCHESTRATION", "PINNED", "READY", "RUNNING", "WAITS FOR"]);
    for route in &queues.orchestrations {
        routes.row(route_row(route, queues.now_ms));
    }
    let mut lanes = Table::new(["ACTIVITY", "TAG", "READY", "RUNNING", "DELAYED", "WAITS FOR"]);
    for lane in &queues.activities {
        lanes.row(lane_row(lane, queues.now_ms));
    }
    text.table(&routes, "no instance is ready").line("").table(&lanes, "no activity is queued")
}

fn route_row(route: &RouteSummary, now_ms: u64) -> [Line; 5] {
    let name = route.name.as_deref().unwrap_or("unknown");
    let version = route.version.as_deref().unwrap_or_default();
    [
        clean(format!("{name} {version}").trim_end()).into(),
        clean(route.pinned.as_deref().unwrap_or_default()).into(),
        route.ready.to_string().into(),
        route.locked.to_string().into(),
        waits(route.oldest_ready_ms, now_ms),
    ]
}

fn lane_row(lane: &LaneSummary, now_ms: u64) -> [Line; 6] {
    [
        clean(&lane.name).into(),
        clean(lane.tag.as_deref().unwrap_or_default()).into(),
        lane.ready.to_string().into(),
        lane.running.to_string().into(),
        lane.delayed.to_string().into(),
        waits(lane.oldest_ready_ms, now_ms),
    ]
}

fn waits(since_ms: Option<u64>, now_ms: u64) -> Line {
    since_ms.map_or_else(Line::default, |since| age(since, now_ms).into())
}

fn timers(queues: &QueueSummary) -> Line {
    let next = queues.next_timer_ms.map(|at| format!(", the next at {}", iso(at))).unwrap_or_default();
    Line::toned(Tone::Dim, format!("{} instances wait for a time{next}", queues.waiting_timers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_shown_with_their_ages() {
        let mut queues = QueueSummary { now_ms: 1_000_000, ..QueueSummary::default() };
        queues.orchestrations.push(RouteSummary {
            name: Some("Order".to_owned()),
            version: Some("2.0.0".to_owned()),
            pinned: Some("0.5.0".to_owned()),
            ready: 3,
            locked: 1,
            oldest_ready_ms: Some(700_000),
        });
        queues.activities.push(LaneSummary {
            name: "Charge".to_owned(),
            tag: Some("gpu".to_owned()),
            running: 2,
            ..LaneSummary::default()
        });
        let expected = "\
ORCHESTRATION  PINNED  READY  RUNNING  WAITS FOR
Order 2.0.0    0.5.0   3      1        5 min

ACTIVITY  TAG  READY  RUNNING  DELAYED  WAITS FOR
Charge    gpu  0      2        0
";
        assert_eq!(describe(Text::default(), &queues).render(false), expected);
        let empty = describe(Text::default(), &QueueSummary::default()).render(false);
        assert_eq!(empty, "no instance is ready\n\nno activity is queued\n");
    }
}
