//! The settings of all workloads: the folder of the data, the number of slots, the time limit.

use std::{path::PathBuf, time::Duration};

use clap::builder::PossibleValuesParser;
use duroxide::{RuntimeOptions, runtime::ObservabilityConfig};

use super::scratch::Scratch;
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
    /// The shortest time between two polls (`dispatcher_min_poll_interval`), in milliseconds; the implementation's default
    /// if not given.
    #[arg(long)]
    poll_ms: Option<u64>,
    /// Where a new folder for the data is made; next to this program if not given. It is removed at the end.
    #[arg(long)]
    pub folder: Option<PathBuf>,
    /// The time limit in seconds: an instance that has not completed by then has failed.
    #[arg(long, default_value_t = 120)]
    limit_s: u64,
}

impl Setting {
    /// The options of every runtime. Logging is turned down on both sides, because it is not what we compare.
    pub fn runtime_options(&self) -> RuntimeOptions {
        let quiet = ObservabilityConfig { log_level: "error".to_owned(), ..ObservabilityConfig::default() };
        let mut options = RuntimeOptions { observability: quiet, ..RuntimeOptions::default() };
        if let Some(slots) = self.slots {
            options.orchestration_concurrency = slots;
            options.worker_concurrency = slots;
        }
        if let Some(poll_ms) = self.poll_ms {
            options.dispatcher_min_poll_interval = Duration::from_millis(poll_ms);
        }
        options
    }

    /// How long a workload may take as a whole.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_s)
    }

    /// The arguments by which another process of this program works on the same data.
    pub fn sibling_args(&self, role: &str, scratch: &Scratch) -> Vec<String> {
        let mut args = vec![role.to_owned(), "--store".to_owned(), self.store.clone()];
        args.extend(["--file".to_owned(), scratch.file().display().to_string()]);
        // The files of a killed process are removed with the scratch folder of the process that started it.
        args.extend(["--folder".to_owned(), scratch.folder().display().to_string()]);
        if let Some(slots) = self.slots {
            args.extend(["--slots".to_owned(), slots.to_string()]);
        }
        if let Some(poll_ms) = self.poll_ms {
            args.extend(["--poll-ms".to_owned(), poll_ms.to_string()]);
        }
        args
    }
}
