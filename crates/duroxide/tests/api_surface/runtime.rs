//! A4, A17.5: the runtime.

use std::sync::Arc;

use duroxide::{
    OrchestrationDescriptor, OrchestrationRegistry, RuntimeOptions,
    providers::Provider,
    runtime::{
        Runtime,
        observability::{MetricsSnapshot, ObservabilityHandle},
        registry::ActivityRegistry,
    },
};

use crate::bounds;

/// Registries go in owned or shared, in any mix.
async fn starts(
    store: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
) -> [Arc<Runtime>; 3] {
    [
        Runtime::start(activities.clone(), Arc::new(orchestrations.clone())).await,
        Runtime::start_with_store(store.clone(), Arc::new(activities.clone()), orchestrations.clone()).await,
        Runtime::start_with_options(store, activities, orchestrations, RuntimeOptions::default()).await,
    ]
}

async fn uses(runtime: Arc<Runtime>) {
    let _: Option<MetricsSnapshot> = runtime.metrics_snapshot();
    let _: Option<&ObservabilityHandle> = runtime.observability_handle();
    let _: Option<OrchestrationDescriptor> = runtime.get_orchestration_descriptor("i").await;
    Arc::clone(&runtime).shutdown(Some(0_u64)).await;
    runtime.shutdown(None).await;
}

/// Users spawn `shutdown`, so its future owns all its data.
#[test]
fn runtime_futures_can_be_spawned() {
    fn spawnable<F: Future + Send + 'static>(_: &F) {}
    let _ = |runtime: Arc<Runtime>| {
        spawnable(&Arc::clone(&runtime).shutdown(None));
        spawnable(&uses(runtime));
    };
    let _ = |store, activities, orchestrations| spawnable(&starts(store, activities, orchestrations));
    bounds::send::<Runtime>();
    bounds::sync::<Runtime>();
}
