//! Builds the global logger from `tracing-subscriber` layers.

use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, filter_fn},
    fmt,
    layer::{Filter, SubscriberExt},
    util::SubscriberInitExt,
};

use crate::observability::{LogFormat, ObservabilityConfig, span::is_ours};

pub(super) fn install(config: &ObservabilityConfig) -> Result<(), String> {
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
    use super::*;
    use crate::{ActivityContext, activity_context::tests::charge_on, fixture::FakeStore};

    #[test]
    fn the_default_filter_raises_only_user_traces() {
        let directives = default_directives("debug");
        assert_eq!(directives, "warn,duroxide::orchestration=debug,duroxide::activity=debug");
        assert!(EnvFilter::try_new(directives).is_ok());
    }

    /// Whether this filter wants the span of an activity, and a span of the activity's code. Asks the filter directly,
    /// because the decision of `tracing` depends on every other subscriber in the program.
    fn wants(filter: &impl Filter<Registry>) -> [bool; 2] {
        // A span without a subscriber has no metadata.
        let _listener = tracing::subscriber::set_default(tracing_subscriber::registry());
        let ours = ActivityContext::new(charge_on(FakeStore::silent())).span(1, None);
        let theirs = tracing::info_span!(target: "duroxide::activity", "checkout");
        [ours, theirs].map(|span| !filter.callsite_enabled(span.metadata().unwrap()).is_never())
    }

    #[test]
    fn our_logger_wants_no_spans_of_turns_and_activities_but_an_exporter_does() {
        let directives = || EnvFilter::new(default_directives("info"));
        assert_eq!(wants(&without_our_spans(directives())), [false, true]);
        assert_eq!(wants(&directives()), [true, true], "an exporter");
        assert_eq!(wants(&EnvFilter::new("warn")), [false, false], "nobody who is interested");
    }
}
