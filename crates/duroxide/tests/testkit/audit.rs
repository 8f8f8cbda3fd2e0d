//! Every turn in a cluster is replayed from scratch and compared.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide::{OrchestrationContext, OrchestrationRegistry, testing::TestCluster, typed::Handlers};

/// Decides by a value that is not recorded. While the execution is cached, no replay shows that.
#[test]
fn code_that_would_not_do_the_same_again_fails() {
    let runs = Arc::new(AtomicU32::new(0));
    let fickle = OrchestrationRegistry::builder()
        .register("Fickle", move |ctx: OrchestrationContext, _input: String| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            async move {
                ctx.schedule_timer(Duration::from_secs(1)).await;
                Ok(ctx.schedule_wait(format!("event-{run}")).await)
            }
        })
        .build();
    TestCluster::builder().handlers(Handlers::new().orchestrations(fickle)).run(async |cluster| {
        let client = cluster.client();
        client.start_orchestration("f", "Fickle", "").await.unwrap();
        let ended: Result<String, String> =
            client.wait_for_orchestration_typed("f", Duration::from_secs(9)).await.unwrap();
        let error = ended.unwrap_err();
        assert!(error.contains("audit: event 4: history says ExternalSubscribed"), "{error}");
    });
}
