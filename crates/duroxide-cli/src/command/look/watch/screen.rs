//! The overview as text.

use duroxide::{InstanceInfo, InstanceSummary, QueueSummary, providers::JoinedNode};
use serde_json::{Value, json};

use crate::{
    command::look::{
        instance, queues,
        stats::{self, Counts},
    },
    output::{Line, Text, Tone, clean, fold},
    time::{age, iso},
};

/// The data that the overview shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Overview {
    /// The store, without secrets.
    pub(super) title: String,
    pub(super) now_ms: u64,
    pub(super) counts: Counts,
    /// The summary of the last hour, by the minute.
    pub(super) summary: InstanceSummary,
    pub(super) queues: Option<QueueSummary>,
    pub(super) nodes: Vec<JoinedNode>,
    pub(super) failures: Vec<InstanceInfo>,
}

impl Overview {
    pub(super) fn screen(&self) -> Text {
        let title =
            Line::toned(Tone::Strong, clean(&self.title)).and(Tone::Dim, format!("  {}", iso(self.now_ms)));
        let text = self.counts.describe(Text::default().line(title).line(""));
        let text = text.lines(stats::oldest(&self.summary, self.now_ms)).line("");
        let text = text.lines(self.charts()).line("");
        let text = match &self.queues {
            Some(queues) => queues::describe(text, queues).line(""),
            None => text,
        };
        self.describe_failures(self.describe_nodes(text))
    }

    fn charts(&self) -> Vec<Line> {
        let summary = &self.summary;
        let line = |(name, tone, buckets): (&str, Tone, &Vec<u64>)| {
            let sum: u64 = buckets.iter().sum();
            Line::toned(Tone::Dim, format!("{name:<10}"))
                .and(tone, chart(buckets))
                .and(Tone::Plain, format!("  {sum} in 1 h"))
        };
        let charts = [
            ("started", Tone::Plain, &summary.started),
            ("completed", Tone::Good, &summary.completed),
            ("failed", Tone::Bad, &summary.failed),
        ];
        charts.map(line).to_vec()
    }

    fn describe_nodes(&self, text: Text) -> Text {
        if self.nodes.is_empty() {
            return text.line(Line::toned(Tone::Warn, "no node has joined: nothing runs until one does"));
        }
        let line = |node: &JoinedNode| {
            let seen = format!("  seen {} ago", age(node.seen_at_ms, self.now_ms));
            let tone = if node.is_there(self.now_ms) { Tone::Good } else { Tone::Bad };
            Line::new("node ").and(tone, clean(node.short_name())).and(Tone::Dim, seen)
        };
        text.lines(self.nodes.iter().map(line))
    }

    fn describe_failures(&self, text: Text) -> Text {
        let line = |info: &InstanceInfo| {
            let why = fold(info.output.as_deref().unwrap_or_default());
            Line::toned(Tone::Bad, format!("failed {} ago  ", age(info.updated_at, self.now_ms)))
                .and(Tone::Plain, clean(&info.instance_id))
                .and(Tone::Dim, format!("  {why}"))
        };
        if self.failures.is_empty() { text } else { text.line("").lines(self.failures.iter().map(line)) }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "at": iso(self.now_ms),
            "counts": self.counts.to_json(),
            "last_hour": self.summary,
            "queues": self.queues,
            "nodes": self.nodes,
            "failures": self.failures.iter().map(instance::to_json).collect::<Vec<_>>(),
        })
    }
}

/// A bar for each bucket, the highest of them full.
fn chart(buckets: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = u128::from(buckets.iter().copied().max().unwrap_or_default().max(1));
    let bar = |count: &u64| {
        let height = (u128::from(*count) * BARS.len() as u128).div_ceil(highest);
        let bar = usize::try_from(height).ok().and_then(|height| height.checked_sub(1));
        bar.and_then(|bar| BARS.get(bar)).copied().unwrap_or(' ')
    };
    buckets.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_as_high_as_its_highest_bar() {
        assert_eq!(chart(&[0, 1, 4, 8, 16]), " ▁▂▄█");
        assert_eq!(chart(&[0, 0]), "  ");
        assert_eq!(chart(&[u64::MAX, 1]), "█▁");
        assert_eq!(chart(&[]), "");
    }

    fn overview() -> Overview {
        let mut overview =
            Overview { title: "sqlite:orders.db".to_owned(), now_ms: 90_000, ..Overview::default() };
        overview.counts = Counts { total: 5, running: 3, pending: Some(1), ..Counts::default() };
        overview.summary.started = vec![1, 2];
        overview.summary.oldest_running = Some(("order-1".to_owned(), 30_000));
        overview
    }

    #[test]
    fn a_screen_shows_running_and_waiting_work() {
        let text = overview().screen().render(false);
        for expected in [
            "sqlite:orders.db  1970-01-01T00:01:30.000Z",
            "5 instances: 3 running, 0 completed, 0 failed",
            "1 pending, 0 dead letters",
            "oldest running: order-1, created 1 min ago",
            "started   ▄█  3 in 1 h",
            "no node has joined: nothing runs until one does",
        ] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
    }

    fn node(name: &str, seen_at_ms: u64) -> JoinedNode {
        JoinedNode { name: name.to_owned(), seen_at_ms, ..JoinedNode::default() }
    }

    #[test]
    fn a_silent_node_and_a_failure_stand_out() {
        let mut overview = overview();
        overview.nodes = vec![node("w1", 89_000), node("w2", 10_000)];
        overview.failures.push(InstanceInfo {
            instance_id: "order-2".to_owned(),
            orchestration_name: "Order".to_owned(),
            orchestration_version: "1.0.0".to_owned(),
            current_execution_id: 1,
            status: "Failed".to_owned(),
            output: Some("no \x1bmoney".to_owned()),
            created_at: 0,
            updated_at: 60_000,
            parent_instance_id: None,
        });
        let text = overview.screen().render(true);
        assert!(text.contains("\x1b[32mw1\x1b[0m\x1b[2m  seen 1.0 s ago"), "{text:?}");
        assert!(text.contains("\x1b[31mw2\x1b[0m\x1b[2m  seen 1 min ago"), "{text:?}");
        let text = overview.screen().render(false);
        assert!(text.contains("failed 30 s ago  order-2  no \\u{1b}money"), "{text}");
        assert_eq!(overview.to_json()["failures"][0]["instance"], "order-2");
    }
}
