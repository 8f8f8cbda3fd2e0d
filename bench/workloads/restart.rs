//! A process is killed in the middle of its work, and another one finishes it.

pub mod takeover;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use duroxide::{ActivityContext, OrchestrationContext};

use super::{
    batch::Batch,
    node::Node,
    outcome::Outcome,
    process::{READY, Sibling},
    scratch::Scratch,
    setting::Setting,
};

pub const INTERRUPTED: &str = "Interrupted";
pub const HOLD: &str = "Hold";

/// Whether activities stay busy until their process is killed.
static HOLDING: AtomicBool = AtomicBool::new(false);

/// How many orchestrations have scheduled their activity, and how many activities are busy.
static SCHEDULED: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);

pub async fn interrupted(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let activity = ctx.schedule_activity(HOLD, input);
    SCHEDULED.fetch_add(1, Ordering::Relaxed);
    activity.await
}

pub async fn hold(_ctx: ActivityContext, input: String) -> Result<String, String> {
    if HOLDING.load(Ordering::Relaxed) {
        HELD.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
    }
    Ok(input)
}

pub fn batch(instances: u64) -> Batch {
    Batch {
        orchestration: INTERRUPTED,
        instances,
        input: Box::new(|number| number.to_string()),
        output: Box::new(|number| number.to_string()),
    }
}

/// A process is killed with all instances in flight and its activities busy: how long until another one has
/// finished everything, from opening the store on.
#[derive(Debug, clap::Args)]
pub struct Restart {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 2_000)]
    instances: u64,
}

impl Restart {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let mut args = self.setting.sibling_args("victim", scratch);
        args.extend(["--instances".to_owned(), self.instances.to_string()]);
        Sibling::start(&args)?.kill()?;

        let begin = Instant::now();
        let node = Node::start(&self.setting, &scratch.file()).await?;
        let outcome = batch(self.instances).outcome(&node.client, begin, self.setting.limit()).await;
        node.stop().await;
        Ok(outcome)
    }
}

/// The process that is to be killed (started by `restart`).
#[derive(Debug, clap::Args)]
pub struct Victim {
    #[command(flatten)]
    pub setting: Setting,
    /// The database file.
    #[arg(long)]
    file: PathBuf,
    /// How many instances it starts.
    #[arg(long)]
    instances: u64,
}

impl Victim {
    /// Starts the instances, says when all are in flight and all slots busy, and waits for its end.
    pub async fn run(&self) -> Result<Outcome, String> {
        HOLDING.store(true, Ordering::Relaxed);
        let busy = (self.setting.runtime_options().worker_concurrency as u64).min(self.instances);
        let node = Node::start(&self.setting, &self.file).await?;
        batch(self.instances).start(&node.client).await;
        while SCHEDULED.load(Ordering::Relaxed) < self.instances || HELD.load(Ordering::Relaxed) < busy {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The last turns may still have to be committed.
        tokio::time::sleep(Duration::from_millis(500)).await;
        println!("{READY}");
        std::future::pending().await
    }
}
