//! [`OpenTelemetryPropagator`]: puts the spans of duroxide into the traces of OpenTelemetry. Copy it into your program.

use duroxide::runtime::observability::{TraceContext, TracePropagator};
use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Translates between trace contexts and spans that a `tracing_opentelemetry` layer collects.
#[derive(Debug, Clone, Copy)]
pub struct OpenTelemetryPropagator;

impl TracePropagator for OpenTelemetryPropagator {
    fn context_of(&self, span: &Span) -> Option<TraceContext> {
        let context = span.context();
        let span = context.span();
        let span = span.span_context();
        let trace_id = u128::from_be_bytes(span.trace_id().to_bytes());
        let span_id = u64::from_be_bytes(span.span_id().to_bytes());
        let context = TraceContext::new(trace_id, span_id, span.trace_flags().to_u8())?;
        Some(context.with_tracestate(&span.trace_state().header()))
    }

    fn set_parent(&self, span: &Span, parent: &TraceContext) {
        let state: TraceState = parent.tracestate().parse().unwrap_or_default();
        let (trace, of) = (TraceId::from(parent.trace_id()), SpanId::from(parent.span_id()));
        let parent = SpanContext::new(trace, of, TraceFlags::new(parent.flags()), true, state);
        // Fails for a span that no layer collects, which then needs no parent.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}
