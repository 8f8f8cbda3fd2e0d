//! The reads of a status and a wait for an instance with a long history.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, ClientError, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    runtime::registry::ActivityRegistry,
};

use crate::{
    faults::Faults,
    fixture::{File, WAIT_MAX, node, quick_options, until},
};

const EVENTS: u32 = 20_000;
const WAITERS: usize = 100;
const STATUS_CALLS: u32 = 1_000;

/// Records `count` events in its first turn, and waits.
async fn long(ctx: OrchestrationContext, count: u32) -> Result<String, String> {
    for n in 0..count {
        ctx.set_kv_value("key", n.to_string());
    }
    Ok(ctx.schedule_wait("end").await)
}

/// B22, 20.2: a hundred waits of two seconds and a thousand status calls on an instance of 20,000 events ask the store for
/// one row each, as for one of five events. No history is read.
#[tokio::test]
async fn waits_and_status_calls_read_no_history() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder().register_typed("Long", long).build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    let client = Client::new(Arc::clone(&store));
    for (instance, events) in [("long", EVENTS), ("short", 5)] {
        client.start_orchestration_typed(instance, "Long", events - 2).await.unwrap();
        until("it waits", async || {
            let info = client.get_execution_info(instance, 1).await;
            info.is_ok_and(|info| info.event_count == events as usize)
        })
        .await;
    }
    let calls = |instance: &'static str| {
        let faults = Faults::default();
        let client = Client::new(faults.around(&store));
        async move {
            let waits = (0..WAITERS).map(|_| {
                let client = client.clone();
                tokio::spawn(async move {
                    let waited = client.wait_for_orchestration(instance, Duration::from_secs(2)).await;
                    assert!(matches!(waited, Err(ClientError::Timeout)), "{waited:?}");
                })
            });
            let waits: Vec<_> = waits.collect();
            for _ in 0..STATUS_CALLS {
                let status = client.get_orchestration_status(instance).await.unwrap();
                assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
            }
            for wait in waits {
                tokio::time::timeout(WAIT_MAX, wait).await.unwrap().unwrap();
            }
            for method in ["read", "read_with_execution", "load_execution"] {
                assert_eq!(faults.called(method), 0, "{method} of {instance}");
            }
            faults.called("read_status")
        }
    };
    let (long, short) = (calls("long").await, calls("short").await);
    assert!(long >= STATUS_CALLS && short >= STATUS_CALLS);
    // A wait reads once, and sometimes again; how often does not depend on the history.
    let per_wait = 10 * u32::try_from(WAITERS).unwrap();
    assert!(long <= STATUS_CALLS + per_wait && short <= STATUS_CALLS + per_wait, "{long} and {short}");
    runtime.shutdown(None).await;
}
