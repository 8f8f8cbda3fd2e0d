//! Changing code while instances run: a recorded history and a check of all open instances find the change that would break
//! them, before it is deployed.

mod today;
mod tomorrow;

use std::{error::Error, io::Write, sync::Arc, time::Duration};

use duroxide::{
    Client,
    providers::{Provider, sqlite::SqliteProvider},
    runtime::Runtime,
    testing::{Progress, replay_dir, verify_open_instances},
};

const ORDERS: u64 = 200;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("orders.db").display());
    let store: Arc<dyn Provider> = Arc::new(SqliteProvider::new(&url, None).await?);

    // The current code runs, and all orders wait for their approval.
    let runtime = Runtime::builder(Arc::clone(&store)).handlers(today::handlers()).build().await?;
    let client = Client::new(Arc::clone(&store));
    for n in 0..ORDERS {
        client.start::<today::order>(format!("order-{n}"), n).await?;
    }
    for n in 0..ORDERS {
        let charged = |status: &String| status == "charged";
        client
            .handle::<today::order>(format!("order-{n}"))
            .wait_until(charged, Duration::from_secs(60))
            .await?;
    }

    // One history is kept with the tests.
    let histories = folder.path().join("histories");
    std::fs::create_dir(&histories)?;
    client.export_history("order-7").await?.write(histories.join("order-7.json"))?;
    println!("today's code replays {} history", replay_dir(&histories, today::handlers())?);
    if let Err(broken) = replay_dir(&histories, tomorrow::careless()) {
        println!("{}", without_paths(&broken.to_string()));
    }

    // Before the rollout all open instances are replayed with the new code, while the old code goes on.
    for (what, handlers) in [("careless", tomorrow::careless()), ("careful", tomorrow::careful())] {
        let report = verify_open_instances(&store, handlers, draw).await?;
        println!("\n{what}: {} checked, {} cannot go on", report.checked(), report.failed());
        for finding in report.findings() {
            println!("{} {}: {} instances", finding.name, finding.version, finding.instances);
        }
    }
    runtime.shutdown(None).await;
    Ok(())
}

/// A progress bar, on the screen and not in the output.
fn draw(progress: Progress) {
    let done = (progress.checked * 40 / progress.total.max(1)) as usize;
    let bar = "#".repeat(done.min(40));
    eprint!("\r[{bar:40}] {}/{}, {} failed", progress.checked, progress.total, progress.failed);
    let _ = std::io::stderr().flush();
}

/// The text without the absolute paths of this machine.
fn without_paths(text: &str) -> String {
    text.split_inclusive([' ', '\n'])
        .map(|word| word.rsplit_once('/').map_or(word, |(_, file)| file))
        .collect()
}
