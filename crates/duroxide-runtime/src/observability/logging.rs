use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, filter_fn},
    fmt,
    layer::{Filter, SubscriberExt},
    util::SubscriberInitExt,
};

use super::{LogFormat, ObservabilityConfig, span::is_ours};

/// Installs a global logger. Its filter comes from `RUST_LOG`; without it, warnings of everything and the
/// configured level of orchestrations and activities.
///
/// It takes no spans of turns and activities: its lines carry the same fields already, and a logger that does not ask
/// for these spans makes them cost nothing.
///
/// # Errors
/// If a logger is already set.
pub fn init_logging(config: &ObservabilityConfig) -> Result<(), String> {
    let lines = fmt::layer::<Registry>();
    let lines = match config.log_format {
        LogFormat::Json => lines.json().boxed(),
        LogFormat::Pretty => lines.pretty().boxed(),
        LogFormat::Compact => lines.compact().boxed(),
    };
    let lines = lines.with_filter(without_our_spans(filter(config)));
    let installed = tracing_subscriber::registry().with(lines).try_init();
    installed.map_err(|error| error.to_string())
}

fn without_our_spans(filter: EnvFilter) -> impl Filter<Registry> {
    filter.and(filter_fn(|metadata| !is_ours(metadata)))
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
    use std::sync::Arc;

    use super::*;
    use crate::{ActivityContext, activity_context::tests::charge_on, fixture::FakeStore};

    #[test]
    fn the_default_filter_raises_only_user_traces() {
        let directives = default_directives("debug");
        assert_eq!(directives, "warn,duroxide::orchestration=debug,duroxide::activity=debug");
        assert!(EnvFilter::try_new(directives).is_ok());
    }

    /// Whether the span of an activity, and one of its own, are made under a subscriber.
    fn makes_spans(subscriber: impl Into<tracing::Dispatch>) -> (bool, bool) {
        tracing::dispatcher::with_default(&subscriber.into(), || {
            let ours = ActivityContext::new(charge_on(FakeStore::silent())).span(1);
            let theirs = tracing::info_span!(target: "duroxide::activity", "checkout");
            (!ours.is_disabled(), !theirs.is_disabled())
        })
    }

    #[test]
    fn our_logger_makes_no_spans_of_turns_and_activities_but_an_exporter_does() {
        let lines = || fmt::layer::<Registry>().with_writer(Arc::new(std::io::sink()));
        let directives = || EnvFilter::new(default_directives("info"));
        let logger =
            tracing_subscriber::registry().with(lines().with_filter(without_our_spans(directives())));
        assert_eq!(makes_spans(logger), (false, true));
        let exporter = tracing_subscriber::registry().with(lines().with_filter(directives()));
        assert_eq!(makes_spans(exporter), (true, true));
        let uninterested = tracing_subscriber::registry().with(lines().with_filter(EnvFilter::new("warn")));
        assert_eq!(makes_spans(uninterested), (false, false));
    }
}
