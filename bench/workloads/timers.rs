//! Timers that are due together.

use std::{
    sync::Mutex,
    time::{Duration, Instant, SystemTime},
};

use duroxide::OrchestrationContext;

use super::{
    activity::parse, batch::Batch, node::Node, outcome::Outcome, scratch::Scratch, setting::Setting,
    spread::Spread,
};

pub const TIMERS: &str = "Timers";

/// How late each timer resumed its orchestration, in milliseconds.
static LATENESS: Mutex<Vec<f64>> = Mutex::new(Vec::new());

/// Sets timers for a moment and notes when they resume it. The input is the moment, in milliseconds of the system's
/// clock, and the number of timers.
pub async fn timers(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (due_ms, count) = input.split_once('/').ok_or("no slash in the input")?;
    let (due_ms, count) = (parse(due_ms)?, parse(count)?);
    // Only the first run sets timers by this; a replay takes the moment that was recorded.
    let remaining = Duration::from_millis(due_ms.saturating_sub(now_ms() as u64));
    let timers = (0..count).map(|_| ctx.schedule_timer(remaining)).collect::<Vec<_>>();
    let noted = timers.into_iter().map(|timer| async {
        timer.await;
        if !ctx.is_replaying() {
            note(now_ms() - due_ms as f64);
        }
    });
    ctx.join(noted.collect()).await;
    Ok(count.to_string())
}

/// Instances with timers that are all due at the same moment: how late the last one resumes.
#[derive(Debug, clap::Args)]
pub struct Timers {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 1_000)]
    instances: u64,
    /// How many timers each instance sets.
    #[arg(long, default_value_t = 1)]
    per_instance: u64,
    /// How many seconds before the moment the first instance is started. All timers must be set by then.
    #[arg(long, default_value_t = 4)]
    lead_s: u64,
}

impl Timers {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let node = Node::start(&self.setting, &scratch.file()).await?;
        let (begin, lead) = (Instant::now(), Duration::from_secs(self.lead_s));
        let (due_ms, per_instance) = (now_ms() as u64 + self.lead_s * 1_000, self.per_instance);
        let batch = Batch {
            orchestration: TIMERS,
            instances: self.instances,
            input: Box::new(move |_| format!("{due_ms}/{per_instance}")),
            output: Box::new(move |_| per_instance.to_string()),
        };
        batch.start(&node.client).await;
        // Clients that poll would be in the way of the timers.
        tokio::time::sleep(lead.saturating_sub(begin.elapsed()) + Duration::from_secs(2)).await;
        let outcome = batch.outcome(&node.client, begin, self.setting.limit()).await;
        node.stop().await;
        self.lateness(outcome)
    }

    fn lateness(&self, mut outcome: Outcome) -> Result<Outcome, String> {
        let spread = Spread::of_ms(LATENESS.lock().map_err(|error| error.to_string())?.drain(..));
        let expected = outcome.correct() * self.per_instance;
        if spread.len() < expected {
            return Err(format!("only {} of {expected} timers were noted", spread.len()));
        }
        // Throughput says nothing here: most of the time is the lead.
        outcome.figures.clear();
        Ok(outcome
            .with("late_p50_ms", spread.percentile(0.5))
            .with("late_p99_ms", spread.percentile(0.99))
            .with("late_last_ms", spread.max()))
    }
}

fn note(late_ms: f64) {
    if let Ok(mut lateness) = LATENESS.lock() {
        lateness.push(late_ms);
    }
}

fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1e3
}
