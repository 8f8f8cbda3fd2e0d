//! `stats`: counts over the whole store.

use std::collections::BTreeSet;

use clap::Args;
use duroxide::{InstanceSummary, SummaryRequest};
use serde_json::{Value, json};

use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Line, Table, Text, Tone, clean},
    store::Store,
    time::{age, iso, now_ms},
};

const HOUR_MS: u64 = 3_600_000;
/// Dead letters are counted up to this number.
const DEAD_LETTERS_MAX: u32 = 1_000;

/// `stats`
#[derive(Debug, Args)]
pub struct Stats {}

impl Stats {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let now_ms = now_ms();
        let from_ms = now_ms.saturating_sub(24 * HOUR_MS);
        let day = SummaryRequest { from_ms, bucket_ms: HOUR_MS, buckets: 24 };
        let summary = store.client.summarize_instances(&day).await?;
        let counts = Counts::read(&store, &summary).await?;
        let sizes = store.client.get_system_metrics().await?;
        let text = counts.describe(Text::default());
        let text = text.line(format!("{} executions, {} events", sizes.total_executions, sizes.total_events));
        let text = by_name(text.line(""), &summary).lines(oldest(&summary, now_ms)).line(day_line(&summary));
        let mut json = counts.to_json();
        if let Some(json) = json.as_object_mut() {
            json.insert("executions".to_owned(), json!(sizes.total_executions));
            json.insert("events".to_owned(), json!(sizes.total_events));
            json.insert("by_name".to_owned(), json!(summary.counts));
            json.insert("last_day".to_owned(), day_json(&summary));
            json.insert("oldest_running".to_owned(), oldest_json(&summary));
        }
        let names: BTreeSet<&String> = summary.counts.iter().map(|count| &count.name).collect();
        let ids = names.into_iter().cloned().collect();
        context.out.print(&Answer { text, json, ids })?;
        Ok(Exit::Done)
    }
}

/// The number of instances by status, and the work that waits.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) running: u64,
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) total: u64,
    pub(super) pending: Option<u64>,
    pub(super) dead_letters: usize,
}

impl Counts {
    pub(super) async fn read(store: &Store, summary: &InstanceSummary) -> Outcome<Self> {
        let of = |status: &str| {
            let counts = summary.counts.iter().filter(|count| count.status == status);
            counts.map(|count| count.count).sum()
        };
        Ok(Self {
            running: of("Running"),
            completed: of("Completed"),
            failed: of("Failed"),
            total: summary.counts.iter().map(|count| count.count).sum(),
            pending: store.client.count_pending_instances().await?,
            dead_letters: store.client.list_dead_letters(Some(DEAD_LETTERS_MAX)).await?.len(),
        })
    }

    pub(super) fn describe(&self, text: Text) -> Text {
        let Self { running, completed, failed, total, dead_letters, .. } = self;
        let tone = |bad: bool, tone: Tone| if bad { tone } else { Tone::Plain };
        let pending = self.pending.unwrap_or_default();
        let instances = Line::new(format!("{total} instances: "))
            .and(Tone::Strong, format!("{running} running"))
            .and(Tone::Plain, format!(", {completed} completed, "))
            .and(tone(*failed > 0, Tone::Bad), format!("{failed} failed"));
        let waiting = Line::toned(tone(pending > 0, Tone::Warn), format!("{pending} pending"))
            .and(Tone::Plain, ", ")
            .and(tone(*dead_letters > 0, Tone::Bad), self.counted_letters());
        text.line(instances).line(waiting)
    }

    fn counted_letters(&self) -> String {
        let is_cut = self.dead_letters >= DEAD_LETTERS_MAX as usize;
        match self.dead_letters {
            1 => "1 dead letter".to_owned(),
            many => format!("{many}{} dead letters", if is_cut { " or more" } else { "" }),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "instances": self.total,
            "running": self.running,
            "completed": self.completed,
            "failed": self.failed,
            "pending": self.pending,
            "dead_letters": self.dead_letters,
        })
    }
}

fn by_name(text: Text, summary: &InstanceSummary) -> Text {
    let mut table = Table::new(["ORCHESTRATION", "VERSION", "STATUS", "INSTANCES"]);
    for count in &summary.counts {
        table.row([
            clean(&count.name).into(),
            clean(&count.version).into(),
            Line::toned(Tone::of_status(&count.status), clean(&count.status)),
            count.count.to_string().into(),
        ]);
    }
    text.table(&table, "no instance has begun")
}

/// The running instance that was created first.
pub(super) fn oldest(summary: &InstanceSummary, now_ms: u64) -> Option<Line> {
    let (id, created_at) = summary.oldest_running.as_ref()?;
    Some(Line::new(format!("oldest running: {}, created {} ago", clean(id), age(*created_at, now_ms))))
}

fn oldest_json(summary: &InstanceSummary) -> Value {
    let oldest = summary.oldest_running.as_ref();
    json!(oldest.map(|(id, created_at)| json!({ "instance": id, "created_at": iso(*created_at) })))
}

fn sums(summary: &InstanceSummary) -> [u64; 3] {
    [&summary.started, &summary.completed, &summary.failed].map(|buckets| buckets.iter().sum())
}

fn day_line(summary: &InstanceSummary) -> Line {
    let [started, completed, failed] = sums(summary);
    Line::toned(
        Tone::Dim,
        format!("in the last 24 h: {started} started, {completed} completed, {failed} failed"),
    )
}

fn day_json(summary: &InstanceSummary) -> Value {
    let [started, completed, failed] = sums(summary);
    json!({ "started": started, "completed": completed, "failed": failed })
}
