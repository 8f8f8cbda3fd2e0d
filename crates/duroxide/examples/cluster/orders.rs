//! The work: orders of several steps, one after the other.

use std::time::Duration;

use duroxide::prelude::*;

use crate::journal::Journal;

/// The build that all workers begin with, and the version of orders that it has.
pub(crate) const OLD: &str = "1.0.0";
/// The build that brings another version of orders along.
pub(crate) const NEW: &str = "2.0.0";
pub(crate) const STEPS: usize = 4;
const STEP_TAKES: Duration = Duration::from_millis(20);

/// Returns the worker of each step.
async fn order(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let mut workers = Vec::new();
    for step in 0..STEPS {
        workers.push(ctx.schedule_activity("Step", step.to_string()).await?);
    }
    Ok(workers.join(" "))
}

/// The handlers of a build: its own version of orders, and the earlier ones.
pub(crate) fn orchestrations(build: &str) -> OrchestrationRegistry {
    let registry = OrchestrationRegistry::builder().register_versioned("Order", OLD, order);
    if build == NEW { registry.register_versioned("Order", NEW, order).build() } else { registry.build() }
}

/// A step is written down when it begins, so that it is known even if its worker dies.
pub(crate) fn activities(worker: &str, journal: Journal) -> ActivityRegistry {
    let worker = worker.to_owned();
    ActivityRegistry::builder()
        .register("Step", move |ctx: ActivityContext, step: String| {
            let (worker, journal, instance) = (worker.clone(), journal.clone(), ctx.instance_id().to_owned());
            async move {
                journal.note(&format!("{worker} {instance} {step}")).map_err(|error| error.to_string())?;
                tokio::time::sleep(STEP_TAKES).await;
                Ok(worker)
            }
        })
        .build()
}
