//! One orchestration with a long history.

use std::{sync::Mutex, time::Instant};

use duroxide::{ActivityContext, OrchestrationContext};

use super::{
    activity::parse, batch::Batch, outcome::Outcome, scratch::Scratch, setting::Setting, spread::Spread,
};

pub const LONG: &str = "Long";
pub const STEP: &str = "Step";

/// How many steps around a number are averaged for it.
const WINDOW: usize = 100;

/// When each activity ran.
static STEPS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

pub async fn long(ctx: OrchestrationContext, count: String) -> Result<String, String> {
    for number in 0..parse(&count)? {
        ctx.schedule_activity(STEP, number.to_string()).await?;
    }
    Ok(count)
}

pub async fn step(_ctx: ActivityContext, number: String) -> Result<String, String> {
    STEPS.lock().map_err(|error| error.to_string())?.push(Instant::now());
    Ok(number)
}

/// One orchestration of many sequential activities: time per activity in its first and last tenth.
#[derive(Debug, clap::Args)]
pub struct Long {
    #[command(flatten)]
    pub setting: Setting,
    /// How many activities.
    #[arg(long, default_value_t = 2_000)]
    activities: u64,
}

impl Long {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let count = self.activities;
        let batch = Batch {
            orchestration: LONG,
            instances: 1,
            input: Box::new(move |_| count.to_string()),
            output: Box::new(move |_| count.to_string()),
        };
        let outcome = batch.measure(&self.setting, scratch).await?;
        let steps = std::mem::take(&mut *STEPS.lock().map_err(|error| error.to_string())?);
        let times: Vec<f64> =
            steps.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64() * 1e3).collect();
        let tenth = times.len().div_ceil(10);
        let early = around(&times, 100).percentile(0.5);
        let late = around(&times, times.len()).percentile(0.5);
        Ok(outcome
            .with("first_tenth_ms", Spread::of_ms(times.iter().copied().take(tenth)).mean())
            .with("last_tenth_ms", Spread::of_ms(times.iter().copied().rev().take(tenth)).mean())
            .with("around_100th_ms", early)
            .with("around_last_ms", late)
            .with("growth", late / early))
    }
}

/// The times of the steps around this one, as far as there are any.
fn around(times: &[f64], number: usize) -> Spread {
    let end = (number + WINDOW / 2).min(times.len());
    Spread::of_ms(times[end.saturating_sub(WINDOW)..end].iter().copied())
}
