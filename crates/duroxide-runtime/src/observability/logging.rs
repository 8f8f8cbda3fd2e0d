use tracing_subscriber::{EnvFilter, fmt};

use super::{LogFormat, ObservabilityConfig};

/// Installs a global logger. Its filter comes from `RUST_LOG`; without it, warnings of everything and the
/// configured level of orchestrations and activities.
///
/// # Errors
/// If a logger is already set.
pub fn init_logging(config: &ObservabilityConfig) -> Result<(), String> {
    let lines = fmt().with_env_filter(filter(config));
    let installed = match config.log_format {
        LogFormat::Json => lines.json().try_init(),
        LogFormat::Pretty => lines.pretty().try_init(),
        LogFormat::Compact => lines.compact().try_init(),
    };
    installed.map_err(|error| error.to_string())
}

fn filter(config: &ObservabilityConfig) -> EnvFilter {
    EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(default_directives(&config.log_level)))
}

fn default_directives(level: &str) -> String {
    format!("warn,duroxide::orchestration={level},duroxide::activity={level}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_filter_raises_only_user_traces() {
        let directives = default_directives("debug");
        assert_eq!(directives, "warn,duroxide::orchestration=debug,duroxide::activity=debug");
        assert!(EnvFilter::try_new(directives).is_ok());
    }
}
