//! [`ObservabilityConfig`]: settings of logs and metrics.

use std::time::Duration;

/// The format of log lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Several lines per event, for people.
    Pretty,
    /// One line per event.
    #[default]
    Compact,
}

/// Logging and metrics of a runtime.
///
/// Build it with `ObservabilityConfig { …, ..Default::default() }`: fields may be added.
#[derive(Debug, Clone)]
pub struct ObservabilityConfig {
    /// The format of log lines.
    pub log_format: LogFormat,
    /// The level of orchestration and activity traces, unless `RUST_LOG` is set.
    pub log_level: String,
    /// The service this runtime is part of.
    pub service_name: String,
    /// The version of that service.
    pub service_version: Option<String>,
    /// How often gauges are read from the store.
    pub gauge_poll_interval: Duration,
}

impl Default for ObservabilityConfig {
    fn default() -> Self {
        Self {
            log_format: LogFormat::Pretty,
            log_level: "info".to_owned(),
            service_name: "duroxide".to_owned(),
            service_version: None,
            gauge_poll_interval: Duration::from_secs(60),
        }
    }
}
