//! Launches orchestrations for a given time and waits for all of them.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use duroxide_provider::Provider;
use duroxide_runtime::{Client, ClientError, OrchestrationStatus};
use tokio::task::JoinSet;

use super::{StressTestConfig, StressTestReport, result::Tally};

/// The orchestration that is launched repeatedly.
#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) orchestration: &'static str,
    pub(super) input: String,
    /// Activities that each of them runs.
    pub(super) activities_per_instance: usize,
}

/// The outcome of one orchestration and its latency. `None` if it did not end in time.
type Ended = Result<(Option<OrchestrationStatus>, Duration), ClientError>;

/// Launches at least one orchestration until the time is over, at most `max_concurrent` in flight. Waits for all.
pub(super) async fn run_load(
    config: &StressTestConfig,
    provider: Arc<dyn Provider>,
    load: Load,
) -> Result<StressTestReport, Box<dyn Error>> {
    let client = Client::new(provider);
    let began = Instant::now();
    let launch_until = began + Duration::from_secs(config.duration_secs);
    let mut tally = Tally::default();
    let mut in_flight = JoinSet::new();
    loop {
        in_flight.spawn(one(client.clone(), load.clone(), Duration::from_secs(config.wait_timeout_secs)));
        while in_flight.len() >= config.max_concurrent.max(1) {
            count_next(&mut in_flight, &mut tally).await?;
        }
        if Instant::now() >= launch_until {
            break;
        }
    }
    while !in_flight.is_empty() {
        count_next(&mut in_flight, &mut tally).await?;
    }
    Ok(tally.report(began.elapsed(), load.activities_per_instance))
}

async fn count_next(in_flight: &mut JoinSet<Ended>, tally: &mut Tally) -> Result<(), Box<dyn Error>> {
    if let Some(ended) = in_flight.join_next().await {
        let (status, took) = ended??;
        tally.count(status.as_ref(), took);
    }
    Ok(())
}

async fn one(client: Client, load: Load, timeout: Duration) -> Ended {
    let instance = next_instance_id();
    let began = Instant::now();
    client.start_orchestration(&instance, load.orchestration, load.input).await?;
    match client.wait_for_orchestration(&instance, timeout).await {
        Ok(status) => Ok((Some(status), began.elapsed())),
        Err(ClientError::Timeout) => Ok((None, began.elapsed())),
        Err(error) => Err(error),
    }
}

/// Ids differ between processes, so that several processes can put load on one store.
fn next_instance_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("stress-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
