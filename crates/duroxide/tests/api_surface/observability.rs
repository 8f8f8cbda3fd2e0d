//! A14, A15, A17.7: observability and the measuring provider.

use std::{sync::Arc, time::Duration};

use duroxide::{
    providers::{Provider, instrumented::InstrumentedProvider},
    runtime::{
        self,
        observability::{
            InvalidTraceparent, LogFormat, MetricsProvider, MetricsSnapshot, ObservabilityConfig,
            ObservabilityHandle, PropagatorAlreadySet, TraceContext, TracePropagator, TracedInput,
            init_logging, set_trace_propagator,
        },
    },
};

use crate::bounds;

#[test]
fn configuration_has_the_documented_defaults() {
    bounds::value::<LogFormat>();
    bounds::eq::<LogFormat>();
    assert_eq!(LogFormat::default(), LogFormat::Compact);
    let _ = |format: runtime::LogFormat| match format {
        LogFormat::Json | LogFormat::Pretty | LogFormat::Compact => (),
    };
    bounds::value::<ObservabilityConfig>();
    let config = runtime::ObservabilityConfig { ..ObservabilityConfig::default() };
    assert_eq!(config.log_format, LogFormat::Pretty);
    assert_eq!((config.log_level.as_str(), config.service_name.as_str()), ("info", "duroxide"));
    assert_eq!(config.service_version, None::<String>);
    assert_eq!(config.gauge_poll_interval, Duration::from_secs(60));
}

#[test]
fn the_snapshot_holds_every_counter() {
    bounds::value::<MetricsSnapshot>();
    bounds::eq::<MetricsSnapshot>();
    let zero: u64 = 0;
    let snapshot = MetricsSnapshot {
        orch_starts: zero,
        orch_completions: zero,
        orch_failures: zero,
        orch_application_errors: zero,
        orch_infrastructure_errors: zero,
        orch_configuration_errors: zero,
        orch_poison: zero,
        activity_success: zero,
        activity_app_errors: zero,
        activity_infra_errors: zero,
        activity_config_errors: zero,
        activity_poison: zero,
        orch_dispatcher_items_fetched: zero,
        worker_dispatcher_items_fetched: zero,
        orch_continue_as_new: zero,
        suborchestration_calls: zero,
        provider_errors: zero,
        unregistered_orch_backoff: zero,
        unregistered_activity_backoff: zero,
        incompatible_version_abandoned: zero,
        ..Default::default()
    };
    assert_eq!(snapshot, MetricsSnapshot::default());
}

#[test]
fn handle_and_provider_signatures() {
    let _: fn(&ObservabilityConfig) -> Result<(), String> = init_logging;
    let _: fn(&ObservabilityConfig) -> Result<ObservabilityHandle, String> = ObservabilityHandle::init;
    let _: fn(&ObservabilityHandle) -> &Arc<MetricsProvider> = ObservabilityHandle::metrics_provider;
    let _: fn(&ObservabilityHandle) -> MetricsSnapshot = ObservabilityHandle::metrics_snapshot;
    let _: fn(&ObservabilityConfig) -> Result<MetricsProvider, String> = MetricsProvider::new;
    let _: fn(&MetricsProvider) -> MetricsSnapshot = MetricsProvider::snapshot;
    let _ = async |handle: ObservabilityHandle, metrics: MetricsProvider| -> Result<(), String> {
        handle.shutdown().await?;
        metrics.shutdown().await
    };
    let _: fn(Arc<dyn Provider>, Option<Arc<MetricsProvider>>) -> InstrumentedProvider =
        InstrumentedProvider::new;
    let _: fn(InstrumentedProvider) -> Arc<dyn Provider> = |provider| Arc::new(provider);
}

fn every_recorder(metrics: &MetricsProvider) {
    metrics.record_orchestration_start("o", "1.0.0", "client");
    metrics.record_orchestration_completion("o", "1.0.0", "success", 0.1_f64, 1_u64, 3_u64);
    metrics.record_orchestration_failure("o", "1.0.0", "app_error", "application");
    metrics.record_orchestration_application_error();
    metrics.record_orchestration_infrastructure_error();
    metrics.record_orchestration_configuration_error();
    metrics.record_orchestration_poison();
    metrics.record_continue_as_new("o", 2_u64);
    metrics.record_activity_execution("a", "success", 0.1_f64, 0_u32, Some("tag"));
    metrics.record_activity_success();
    metrics.record_activity_app_error();
    metrics.record_activity_infra_error();
    metrics.record_activity_config_error();
    metrics.record_activity_poison();
    metrics.record_suborchestration_call("p", "c", "success");
    metrics.record_suborchestration_duration("p", "c", 0.1_f64, "success");
    metrics.record_provider_operation("read", 0.1_f64, "success");
    metrics.record_provider_error("read", "retryable");
    metrics.record_orch_dispatcher_items_fetched(1_u64);
    metrics.record_orch_dispatcher_processing_duration(1_u64);
    metrics.record_worker_dispatcher_items_fetched(1_u64);
    metrics.record_worker_dispatcher_execution_duration(1_u64);
    metrics.update_queue_depths(1_u64, 2_u64);
    metrics.increment_active_orchestrations();
    metrics.decrement_active_orchestrations();
    metrics.set_active_orchestrations(4_i64);
    metrics.record_unregistered_orchestration_backoff();
    metrics.record_unregistered_activity_backoff();
    metrics.record_incompatible_version_abandoned();
    metrics.record_turn("cache");
    metrics.record_lock_loss("worker");
    metrics.update_nodes(1_u64);
}

#[test]
fn recorders_feed_the_snapshot() {
    let metrics = MetricsProvider::new(&ObservabilityConfig::default()).unwrap();
    every_recorder(&metrics);
    let queue_depths: (u64, u64) = metrics.get_queue_depths();
    assert_eq!(queue_depths, (1, 2));
    let active: i64 = metrics.get_active_orchestrations();
    assert_eq!(active, 4);
    assert_eq!(metrics.snapshot().unregistered_orch_backoff, 1);
}

struct NoTraces;

impl TracePropagator for NoTraces {
    fn context_of(&self, _span: &tracing::Span) -> Option<TraceContext> {
        None
    }

    fn set_parent(&self, _span: &tracing::Span, _parent: &TraceContext) {}
}

#[test]
fn trace_contexts_and_propagators() {
    bounds::value::<TraceContext>();
    bounds::eq::<TraceContext>();
    bounds::error::<InvalidTraceparent>();
    bounds::error::<PropagatorAlreadySet>();
    let _: fn(u128, u64, u8) -> Option<TraceContext> = TraceContext::new;
    let _: fn(TraceContext, &str) -> TraceContext = TraceContext::with_tracestate;
    let context: TraceContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
    let _: (u128, u64, u8) = (context.trace_id(), context.span_id(), context.flags());
    let _: &str = context.tracestate();
    let traced = TracedInput { input: "in".to_owned(), context: Some(context.clone()) };
    let text: String = traced.clone().into_text();
    assert_eq!((TracedInput::plain(&text), TracedInput::context_of(&text)), ("in", Some(context)));
    assert_eq!(TracedInput::from_text(text), traced);
    assert_eq!(set_trace_propagator(NoTraces), Ok(()));
    assert_eq!(set_trace_propagator(NoTraces), Err(PropagatorAlreadySet));
}
