//! The steps of each worker, in the journal of the workers and in the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use duroxide::{EventKind, prelude::*};

use crate::{NEW_ORDERS, OLD_ORDERS, Outcome, WAIT_MAX, journal::Journal, orders::STEPS};

#[derive(Default)]
pub(crate) struct Report {
    /// Steps by the worker that began them.
    began: BTreeMap<String, usize>,
    /// Steps by the worker whose result is recorded.
    recorded: BTreeMap<String, usize>,
    /// Orders by the version that did them.
    orders: BTreeMap<String, usize>,
    /// Steps that more than one worker began.
    again: usize,
    /// Completions in all histories.
    completions: usize,
}

impl Report {
    /// Waits until all orders are done.
    pub(crate) async fn collect(client: &Client, journal: &Journal) -> Outcome<Self> {
        let mut report = Self::default();
        let old = (0..OLD_ORDERS).map(|order| format!("old-{order}"));
        for order in old.chain((0..NEW_ORDERS).map(|order| format!("new-{order}"))) {
            let workers: String = match client.wait_for_orchestration(&order, WAIT_MAX).await? {
                OrchestrationStatus::Completed { output, .. } => output,
                other => return Err(format!("{order}: {other:?}").into()),
            };
            for worker in workers.split(' ') {
                *report.recorded.entry(worker.to_owned()).or_default() += 1;
            }
            let version = client.get_instance_info(&order).await?.orchestration_version;
            *report.orders.entry(version).or_default() += 1;
            let history = client.read_execution_history(&order, 1).await?;
            let is_completion = |event: &&Event| matches!(event.kind, EventKind::ActivityCompleted { .. });
            report.completions += history.iter().filter(is_completion).count();
        }
        report.read(journal);
        Ok(report)
    }

    fn read(&mut self, journal: &Journal) {
        let mut steps = BTreeSet::new();
        for line in journal.lines() {
            let Some((worker, step)) = line.split_once(' ') else { continue };
            *self.began.entry(worker.to_owned()).or_default() += 1;
            self.again += usize::from(!steps.insert(step.to_owned()));
        }
    }

    /// Every step was recorded once, and by a worker that began it.
    pub(crate) fn check(&self) -> Outcome {
        let expected = (OLD_ORDERS + NEW_ORDERS) * STEPS;
        let recorded: usize = self.recorded.values().sum();
        let is_sound = |(worker, recorded): (&String, &usize)| self.began.get(worker) >= Some(recorded);
        if (recorded, self.completions) == (expected, expected) && self.recorded.iter().all(is_sound) {
            Ok(())
        } else {
            Err(format!("{expected} steps, {recorded} results and {} completions", self.completions).into())
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (version, orders) in &self.orders {
            writeln!(f, "{orders} orders were done by version {version}.")?;
        }
        for (worker, began) in &self.began {
            let recorded = self.recorded.get(worker).copied().unwrap_or_default();
            writeln!(f, "{worker} began {began:4} steps, {recorded:4} of them are recorded.")?;
        }
        writeln!(f, "{} steps had to run again, because their worker was killed.", self.again)?;
        write!(f, "Each of {} steps is recorded once.", self.completions)
    }
}
