//! Installs a global logger.

#[cfg(feature = "subscriber")]
mod subscriber;

use super::ObservabilityConfig;

/// Installs a global logger. Its filter comes from `RUST_LOG`; by default it logs all warnings, and orchestrations and
/// activities at the configured level.
///
/// This needs the feature `subscriber`. duroxide itself only uses `tracing`, so a program that has a subscriber of its
/// own does not need the feature.
///
/// The logger ignores the spans of turns and activities: its lines carry the same fields already, and spans that no
/// subscriber asks for cost nothing.
///
/// # Errors
/// If a logger is already set, or if duroxide was built without the feature `subscriber`.
pub fn init_logging(config: &ObservabilityConfig) -> Result<(), String> {
    #[cfg(feature = "subscriber")]
    {
        subscriber::install(config)
    }
    #[cfg(not(feature = "subscriber"))]
    {
        let _ = config;
        Err("duroxide was built without the feature `subscriber`".to_owned())
    }
}
