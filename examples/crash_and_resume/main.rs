//! An order workflow that finishes although its worker is killed in the middle.
//!
//! The program starts itself as a worker process on a SQLite file, kills it with SIGKILL while an activity is running
//! and a timer is pending, starts a second worker, approves the order, and prints what happened when. At the end it
//! checks that no recorded step ran again, and fails with the difference otherwise. It keeps the store, and prints
//! the commands that inspect it.
//!
//! ```text
//! cargo run --release --example crash_and_resume
//! ```

mod journal;
mod order;
mod timeline;
mod verdict;
mod worker;

use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use duroxide::prelude::*;

use crate::{journal::Journal, timeline::Timeline, worker::Worker};

/// How long to wait for anything before the run counts as failed.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
pub(crate) const INSTANCE: &str = "order-1001";

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let result = match (args.next(), args.next()) {
        (Some(name), Some(folder)) => worker::run(&name, folder.as_ref()).await,
        _ => supervise().await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("FAILED: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn supervise() -> Result<(), Box<dyn Error>> {
    println!(
        "An order is placed, its worker is killed, another one finishes it. This takes a few seconds.\n"
    );
    let folder = tempfile::tempdir()?;
    let journal = Journal::open(folder.path(), "outside");
    let store = worker::open_store(folder.path()).await?;
    let client = Client::new(store);

    let first = Worker::start("worker 1", folder.path())?;
    journal.note("started", first.describe())?;
    client.start_orchestration_typed(INSTANCE, "PlaceOrder", order::sample()).await?;
    journal.note("ordered", "teapot, kettle and cups")?;

    wait_for(&journal, "worker 1", "FraudCheck").await?;
    first.kill()?;
    journal.note("killed", "worker 1 with SIGKILL, in the middle of FraudCheck")?;

    let second = Worker::start("worker 2", folder.path())?;
    journal.note("started", second.describe())?;
    wait_for(&journal, "worker 2", "AskManager").await?;
    journal.note("approved", "by the manager")?;
    client.raise_event(INSTANCE, "Approval", "approved").await?;

    let output: String = client.wait_for_orchestration_typed(INSTANCE, WAIT_MAX).await??;
    second.stop()?;

    let timeline = Timeline::collect(&journal, &client).await?;
    println!("{timeline}\nResult: {output}\n");
    println!("{}\n", verdict::check(&timeline, &output)?);
    // Kept, so that the user can inspect it with the command line.
    let store = folder.keep().join(worker::STORE);
    println!(
        "The store is kept. Look into it, with `cargo run -p duroxide-cli --` for `duroxide` if that is not installed:"
    );
    println!("    duroxide --store sqlite:{} ui", store.display());
    println!("    duroxide --store sqlite:{} history {INSTANCE}", store.display());
    Ok(())
}

/// Waits until a worker has written in the journal that it began an activity.
async fn wait_for(journal: &Journal, worker: &str, activity: &str) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    while !journal.entries()?.iter().any(|entry| entry.is(worker, activity)) {
        if begin.elapsed() > WAIT_MAX {
            return Err(format!("{worker} did not begin {activity} within {WAIT_MAX:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
