//! `watch`: a live overview in the terminal.

mod screen;
mod terminal;

use std::time::{Duration, Instant};

use clap::Args;
use duroxide::{InstanceQuery, InstanceSummary, SummaryRequest};

use self::{screen::Overview, terminal::Terminal};
use super::stats::Counts;
use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::{Format, note},
    store::Store,
    time::{now_ms, parse_duration},
};

/// A summary reads all instances, so it is reused: this long, or [`SUMMARY_SHARE`] times as long as the read took.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(10);
const SUMMARY_SHARE: u32 = 30;
const MINUTE_MS: u64 = 60_000;
/// Minutes that the chart shows.
const MINUTES: u32 = 60;
/// Failed instances that are shown, the newest ones.
const FAILURES: u32 = 5;

/// `watch`
#[derive(Debug, Args)]
pub struct Watch {
    /// Interval at which the store is read
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    interval: Duration,
    /// End after this many screens
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

impl Watch {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        tokio::select! {
            // Polled first, so that an interrupt ends the command at any time and the terminal is restored.
            biased;
            _ = tokio::signal::ctrl_c() => Ok(Exit::Done),
            shown = self.show(&store, context) => shown,
        }
    }

    async fn show(&self, store: &Store, context: &Context<'_>) -> Outcome {
        let title = context.address()?.to_string();
        let terminal = Terminal::enter(context.out);
        let mut summary = Summary::default();
        for number in 1.. {
            match Overview::read(store, &title, &mut summary).await {
                Ok(overview) if context.out.format == Format::Json => {
                    context.out.print_json_line(&overview.to_json())?;
                }
                Ok(overview) => terminal.show(&overview.screen())?,
                // The next read may succeed, for example if the store was only busy.
                Err(failure) => note(&format!("error: {failure}")),
            }
            if self.count == Some(number) {
                break;
            }
            tokio::time::sleep(self.interval).await;
        }
        Ok(Exit::Done)
    }
}

/// The last summary, and the time until which it is reused.
#[derive(Debug, Default)]
struct Summary(Option<(Instant, InstanceSummary)>);

impl Summary {
    async fn read(&mut self, store: &Store) -> Outcome<InstanceSummary> {
        let began = Instant::now();
        if let Some((good_until, summary)) = &self.0
            && began < *good_until
        {
            return Ok(summary.clone());
        }
        let from_ms = now_ms().saturating_sub(MINUTE_MS * u64::from(MINUTES));
        let request = SummaryRequest { from_ms, bucket_ms: MINUTE_MS, buckets: MINUTES };
        let summary = store.client.summarize_instances(&request).await?;
        let pause = (began.elapsed() * SUMMARY_SHARE).max(SUMMARY_INTERVAL);
        self.0 = Some((Instant::now() + pause, summary.clone()));
        Ok(summary)
    }
}

impl Overview {
    async fn read(store: &Store, title: &str, summary: &mut Summary) -> Result<Self, Failure> {
        let summary = summary.read(store).await?;
        let failed = InstanceQuery::default().status("Failed").limit(FAILURES);
        Ok(Self {
            title: title.to_owned(),
            now_ms: now_ms(),
            counts: Counts::read(store, &summary).await?,
            summary,
            // `None` for a store that cannot summarise its queues.
            queues: store.client.summarize_queues().await.ok(),
            nodes: store.client.list_nodes().await?,
            failures: store.client.query_instances(&failed).await?.instances,
        })
    }
}
