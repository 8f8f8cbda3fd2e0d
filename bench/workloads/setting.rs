//! What all workloads can be told: where data goes, how many slots there are, when to give up.

use std::{path::PathBuf, time::Duration};

use clap::builder::PossibleValuesParser;
use duroxide::{RuntimeOptions, runtime::ObservabilityConfig};

use crate::adapter;

/// The surroundings of a measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Setting {
    /// The store.
    #[arg(long, default_value = adapter::STORES[0], value_parser = PossibleValuesParser::new(adapter::STORES))]
    pub store: String,
    /// How many orchestrations and how many activities may run at the same time; the implementation's default if
    /// not given.
    #[arg(long)]
    pub slots: Option<usize>,
    /// Where a fresh folder for the data is made; beside this program if not given. It is removed at the end.
    #[arg(long)]
    pub folder: Option<PathBuf>,
    /// After how many seconds to give up: what has not completed by then has failed.
    #[arg(long, default_value_t = 300)]
    limit_s: u64,
}

impl Setting {
    /// The options of every runtime. Logging is turned down on both sides, because it is not what we compare.
    pub fn runtime_options(&self) -> RuntimeOptions {
        let quiet = ObservabilityConfig { log_level: "error".to_owned(), ..ObservabilityConfig::default() };
        let defaults = RuntimeOptions { observability: quiet, ..RuntimeOptions::default() };
        match self.slots {
            None => defaults,
            Some(slots) => {
                RuntimeOptions { orchestration_concurrency: slots, worker_concurrency: slots, ..defaults }
            }
        }
    }

    /// How long a workload may take as a whole.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_s)
    }

    /// These as arguments for another process of this program.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = vec!["--store".to_owned(), self.store.clone()];
        if let Some(slots) = self.slots {
            args.extend(["--slots".to_owned(), slots.to_string()]);
        }
        args
    }
}
