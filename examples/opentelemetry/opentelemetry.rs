//! OpenTelemetry: one trace per instance, from the span that starts it through every turn and activity, to the console.
//!
//! In place of `opentelemetry_stdout` a service uses the exporter of its collector; nothing else changes. The trace of the
//! caller is recorded with the start. Turns are children of the span that started the instance, activities of the turn
//! that scheduled them, also on other machines and after a restart.

use std::{error::Error, sync::Arc, time::Duration};

use duroxide::{prelude::*, runtime::observability::set_trace_propagator};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_example::OpenTelemetryPropagator;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Instrument as _, info, info_span, instrument};
use tracing_subscriber::{
    Layer as _, filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// What the exporter gets: the spans of duroxide, and those of this program.
const EXPORTED: [(&str, tracing::Level); 3] = [
    ("duroxide::orchestration", tracing::Level::INFO),
    ("duroxide::activity", tracing::Level::INFO),
    ("opentelemetry", tracing::Level::INFO),
];

async fn trip(ctx: OrchestrationContext, city: String) -> Result<String, String> {
    ctx.trace_info(format!("planning a trip to {city}"));
    ctx.schedule_activity("Book", city).await
}

async fn book(_ctx: ActivityContext, city: String) -> Result<String, String> {
    Ok(format!("{city} by train, seat {}", choose_seat(&city)))
}

/// A span of the program's own. It becomes a child of the activity's span.
#[instrument]
fn choose_seat(city: &str) -> usize {
    info!("choosing a seat");
    city.len()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let exporter = SdkTracerProvider::builder()
        .with_simple_exporter(opentelemetry_stdout::SpanExporter::default())
        .with_resource(Resource::builder_empty().with_service_name("travel-agency").build())
        .build();
    let spans = tracing_opentelemetry::layer()
        .with_tracer(exporter.tracer("duroxide"))
        .with_filter(Targets::new().with_targets(EXPORTED));
    tracing_subscriber::registry().with(spans).init();
    set_trace_propagator(OpenTelemetryPropagator)?;

    let activities = ActivityRegistry::builder().register("Book", book).build();
    let orchestrations = OrchestrationRegistry::builder().register("Trip", trip).build();
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    let request = info_span!("request");
    client.start_orchestration("trip-1", "Trip", "Vienna").instrument(request).await?;
    let ticket: String = client.wait_for_orchestration_typed("trip-1", Duration::from_secs(30)).await??;
    runtime.shutdown(None).await;
    exporter.shutdown()?;
    println!("{ticket}");
    Ok(())
}
