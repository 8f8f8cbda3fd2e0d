//! [`View`]: the overview as it is shown.

use std::collections::BTreeMap;

use duroxide::{
    InstanceSummary,
    providers::{LaneSummary, RouteSummary},
};

use crate::{
    cached_answer::Answer,
    charts::series::{Counts, Series, series},
    format::{self, Moment},
    links,
    overview_cache::{BUCKET, BUCKETS, Counted, Queued},
    pages::instances::status_class,
};

/// Maximum number of names, routes and lanes shown.
const ROWS_MAX: usize = 50;

/// The period that the chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    Hour,
    SixHours,
    Day,
}

impl Range {
    const ALL: [Self; 3] = [Self::Hour, Self::SixHours, Self::Day];

    pub(super) fn of(text: Option<&str>) -> Self {
        Self::ALL.into_iter().find(|range| Some(range.word()) == text).unwrap_or(Self::Day)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "24h",
        }
    }

    /// The number of buckets shown, and of bars.
    fn buckets_and_bars(self) -> (usize, usize) {
        match self {
            Self::Hour => (30, 30),
            Self::SixHours => (180, 45),
            Self::Day => (BUCKETS as usize, 48),
        }
    }
}

/// The overview as it is shown.
#[derive(Debug)]
pub(super) struct View {
    /// `None` until the first count has ended.
    pub(super) counts: Option<CountsView>,
    pub(super) queues: Option<QueuesView>,
    pub(super) ranges: Vec<(&'static str, bool)>,
}

/// The counts over all instances.
#[derive(Debug)]
pub(super) struct CountsView {
    pub(super) statuses: Vec<StatusCount>,
    pub(super) names: Vec<NameCount>,
    pub(super) names_left_out: usize,
    pub(super) series: Series,
    pub(super) oldest: Option<Oldest>,
    pub(super) age: String,
    pub(super) cost: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct StatusCount {
    pub(super) status: String,
    pub(super) class: &'static str,
    pub(super) count: String,
    pub(super) link: String,
}

/// Instances of one name and version, by status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NameCount {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) link: String,
    pub(super) running: String,
    pub(super) completed: String,
    pub(super) failed: String,
    pub(super) has_failed: bool,
}

#[derive(Debug)]
pub(super) struct Oldest {
    pub(super) id: String,
    pub(super) link: String,
    pub(super) since: Moment,
}

/// The queued work and the nodes.
#[derive(Debug)]
pub(super) struct QueuesView {
    pub(super) routes: Vec<Waiting>,
    pub(super) lanes: Vec<Waiting>,
    pub(super) left_out: usize,
    pub(super) timers: String,
    pub(super) next_timer: Option<Moment>,
    pub(super) nodes: Vec<(String, bool, Moment)>,
    pub(super) ready: String,
    pub(super) nodes_there: usize,
    /// Whether the store can summarise its queues.
    pub(super) is_known: bool,
}

/// Queued work that needs the same capability.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) label: String,
    pub(super) detail: String,
    pub(super) ready: String,
    pub(super) running: String,
    pub(super) delayed: String,
    pub(super) oldest: String,
}

impl View {
    pub(super) fn new(
        counted: Option<&Answer<Counted>>,
        queued: Option<&Answer<Queued>>,
        pending: Option<u64>,
        range: Range,
        now_ms: u64,
    ) -> Self {
        Self {
            counts: counted.map(|counted| CountsView::new(counted, pending, range, now_ms)),
            queues: queued.map(|queued| QueuesView::new(&queued.value)),
            ranges: Range::ALL.iter().map(|other| (other.word(), *other == range)).collect(),
        }
    }
}

impl CountsView {
    fn new(answer: &Answer<Counted>, pending: Option<u64>, range: Range, now_ms: u64) -> Self {
        let Counted { summary, from_ms, at_ms, .. } = &answer.value;
        let names = names(summary);
        let oldest = summary.oldest_running.as_ref().map(|(id, since)| Oldest {
            id: id.clone(),
            link: links::instance(id),
            since: Moment::new(*since, now_ms),
        });
        Self {
            statuses: statuses(summary, pending),
            names_left_out: names.len().saturating_sub(ROWS_MAX),
            names: names.into_iter().take(ROWS_MAX).collect(),
            series: drawn(summary, *from_ms, range),
            oldest,
            age: format::duration(now_ms.saturating_sub(*at_ms)),
            cost: format::duration(u64::try_from(answer.cost.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

fn statuses(summary: &InstanceSummary, pending: Option<u64>) -> Vec<StatusCount> {
    // Always shown, also with a count of zero.
    let mut counts: BTreeMap<&str, u64> = ["Running", "Completed", "Failed"].map(|status| (status, 0)).into();
    for count in &summary.counts {
        *counts.entry(&count.status).or_default() += count.count;
    }
    let order = |status: &str| {
        ["Running", "Completed", "Failed"].iter().position(|known| *known == status).unwrap_or(9)
    };
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(status, _)| order(status));
    if let Some(pending) = pending {
        counts.insert(0, ("Pending", pending));
    }
    let shown = |(status, count): (&str, u64)| StatusCount {
        class: status_class(status),
        count: format::number(count),
        link: format!("instances?status={}", links::encode(status)),
        status: status.to_owned(),
    };
    counts.into_iter().map(shown).collect()
}

fn names(summary: &InstanceSummary) -> Vec<NameCount> {
    let mut counts: BTreeMap<(&str, &str), [u64; 3]> = BTreeMap::new();
    for count in &summary.counts {
        let [running, completed, failed] = counts.entry((&count.name, &count.version)).or_default();
        let place = match count.status.as_str() {
            "Completed" => completed,
            "Failed" => failed,
            // An instance between two executions counts as running.
            _ => running,
        };
        *place += count.count;
    }
    let shown = |((name, version), [running, completed, failed]): ((&str, &str), [u64; 3])| NameCount {
        link: format!("instances?name={}&version={}", links::encode(name), links::encode(version)),
        name: name.to_owned(),
        version: version.to_owned(),
        running: format::number(running),
        completed: format::number(completed),
        failed: format::number(failed),
        has_failed: failed > 0,
    };
    counts.into_iter().map(shown).collect()
}

fn drawn(summary: &InstanceSummary, from_ms: u64, range: Range) -> Series {
    let (buckets, bars) = range.buckets_and_bars();
    let bucket_ms = u64::try_from(BUCKET.as_millis()).unwrap_or(u64::MAX);
    let skipped = summary.started.len().saturating_sub(buckets);
    let last = |values: &'_ [u64]| values.get(skipped..).map(<[u64]>::to_vec).unwrap_or_default();
    let (started, completed, failed) =
        (last(&summary.started), last(&summary.completed), last(&summary.failed));
    let counts = Counts { started: &started, completed: &completed, failed: &failed };
    series(counts, from_ms + skipped as u64 * bucket_ms, bucket_ms, bars)
}

impl QueuesView {
    fn new(queued: &Queued) -> Self {
        let Queued { queues, nodes, now_ms } = queued;
        let now = *now_ms;
        let is_known = queues.is_some();
        let queues = queues.clone().unwrap_or_default();
        let ready = queues.orchestrations.iter().map(|route| route.ready).sum::<u64>()
            + queues.activities.iter().map(|lane| lane.ready).sum::<u64>();
        let left_out = |length: usize| length.saturating_sub(ROWS_MAX);
        Self {
            routes: queues
                .orchestrations
                .iter()
                .take(ROWS_MAX)
                .map(|route| Waiting::route(route, now))
                .collect(),
            lanes: queues.activities.iter().take(ROWS_MAX).map(|lane| Waiting::lane(lane, now)).collect(),
            left_out: left_out(queues.orchestrations.len()) + left_out(queues.activities.len()),
            timers: format::number(queues.waiting_timers),
            next_timer: queues.next_timer_ms.map(|at| Moment::new(at, now)),
            nodes: nodes
                .iter()
                .map(|node| {
                    (node.short_name().to_owned(), node.is_there(now), Moment::new(node.seen_at_ms, now))
                })
                .collect(),
            nodes_there: nodes.iter().filter(|node| node.is_there(now)).count(),
            ready: if is_known { format::number(ready) } else { "?".to_owned() },
            is_known,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.routes.is_empty() && self.lanes.is_empty()
    }
}

impl Waiting {
    fn route(route: &RouteSummary, now: u64) -> Self {
        let pinned = route.pinned.as_ref().map(|version| format!("pinned to duroxide {version}"));
        Self {
            label: format!(
                "{} {}",
                route.name.as_deref().unwrap_or("not started yet"),
                route.version.as_deref().unwrap_or_default()
            ),
            detail: pinned.unwrap_or_default(),
            ready: format::number(route.ready),
            running: format::number(route.locked),
            delayed: String::new(),
            oldest: age(route.oldest_ready_ms, now),
        }
    }

    fn lane(lane: &LaneSummary, now: u64) -> Self {
        Self {
            label: lane.name.clone(),
            detail: lane.tag.as_ref().map(|tag| format!("tag {tag}")).unwrap_or_default(),
            ready: format::number(lane.ready),
            running: format::number(lane.running),
            delayed: format::number(lane.delayed),
            oldest: age(lane.oldest_ready_ms, now),
        }
    }
}

fn age(since: Option<u64>, now: u64) -> String {
    since.map(|since| format::duration(now.saturating_sub(since))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use duroxide::providers::InstanceCount;

    use super::*;

    fn count(name: &str, version: &str, status: &str, count: u64) -> InstanceCount {
        InstanceCount { name: name.into(), version: version.into(), status: status.into(), count }
    }

    fn summary() -> InstanceSummary {
        let counts = vec![
            count("Order", "1.0.0", "Completed", 1_500),
            count("Order", "1.0.0", "ContinuedAsNew", 1),
            count("Order", "1.0.0", "Running", 2),
            count("Order", "2.0.0", "Failed", 3),
        ];
        InstanceSummary { counts, ..InstanceSummary::default() }
    }

    #[test]
    fn statuses_come_in_the_order_of_a_life_and_a_zero_is_shown() {
        let shown = statuses(&InstanceSummary::default(), Some(4));
        let texts: Vec<_> = shown.iter().map(|count| (count.status.as_str(), count.count.as_str())).collect();
        assert_eq!(texts, [("Pending", "4"), ("Running", "0"), ("Completed", "0"), ("Failed", "0")]);
        let shown = statuses(&summary(), None);
        let texts: Vec<_> = shown.iter().map(|count| (count.status.as_str(), count.count.as_str())).collect();
        assert_eq!(
            texts,
            [("Running", "2"), ("Completed", "1,500"), ("Failed", "3"), ("ContinuedAsNew", "1")]
        );
    }

    #[test]
    fn names_are_counted_by_version() {
        let shown = names(&summary());
        let texts: Vec<_> = shown
            .iter()
            .map(|n| (n.version.as_str(), n.running.as_str(), n.completed.as_str(), n.failed.as_str()))
            .collect();
        assert_eq!(texts, [("1.0.0", "3", "1,500", "0"), ("2.0.0", "0", "0", "3")]);
        assert!(shown[1].has_failed && !shown[0].has_failed);
    }

    #[test]
    fn a_range_shows_the_last_buckets() {
        let mut started = vec![7; BUCKETS as usize];
        started[719] = 1;
        let zeros = vec![0; BUCKETS as usize];
        let summary = InstanceSummary {
            started,
            completed: zeros.clone(),
            failed: zeros,
            ..InstanceSummary::default()
        };
        let hour = drawn(&summary, 0, Range::Hour);
        assert_eq!(
            (hour.bars.len(), hour.begin.as_str(), hour.end.as_str()),
            (30, "1970-01-01 23:00:00", "1970-01-02 00:00:00")
        );
        assert_eq!(hour.started, "204");
        assert_eq!(drawn(&summary, 0, Range::Day).bars.len(), 48);
        assert_eq!(Range::of(Some("6h")), Range::SixHours);
        assert_eq!(Range::of(Some("x")), Range::Day);
    }
}
