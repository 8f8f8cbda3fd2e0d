//! Key-value state over turns, executions and restarts.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]

mod fixture;

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use duroxide::{
    Client, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::Provider,
    runtime::{limits::MAX_KV_KEYS, registry::ActivityRegistry},
};
use fixture::{File, ended, failure, node, output, quick_options, recorded};

/// Sets a key per turn: as many as the first number says, and in the executions that follow as the others say.
async fn collects(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let plan: Vec<usize> = input.split(' ').map(|number| number.parse().unwrap()).collect();
    let (now, later) = plan.split_first().expect("a number");
    for n in 0..*now {
        ctx.set_kv_value(format!("{}-{n}", later.len()), "");
        ctx.schedule_timer(Duration::ZERO).await;
    }
    match later {
        [] => Ok(ctx.get_kv_length().to_string()),
        _ => ctx.continue_as_new(later.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")).await,
    }
}

/// Sets and clears in turn, so that never more than the allowed keys are alive.
async fn replaces(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    for n in 0..2 * MAX_KV_KEYS {
        ctx.set_kv_value(n.to_string(), "");
        if let Some(old) = n.checked_sub(MAX_KV_KEYS - 1) {
            ctx.clear_kv_value(old.to_string());
        }
        if n % 10 == 0 {
            ctx.schedule_timer(Duration::ZERO).await;
        }
    }
    Ok(ctx.get_kv_length().to_string())
}

/// B8, 11.4: keys of all turns and of earlier executions count, as long as they live.
#[tokio::test]
async fn the_key_limit_counts_over_turns_and_executions() {
    let file = File::new();
    let store = file.open().await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("Collects", collects)
        .register("Replaces", replaces)
        .build();
    let runtime = node(&store, ActivityRegistry::default(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    let over = "KV key count (151) exceeds limit (150)";
    for (instance, plan, execution) in [("one", "151", 1), ("two", "100 51", 2)] {
        client.start_orchestration(instance, "Collects", plan).await.unwrap();
        assert_eq!(failure(ended(&client, instance).await).display_message(), over);
        let history = client.read_execution_history(instance, execution).await.unwrap();
        let sets = history.iter().filter(|event| matches!(event.kind, EventKind::KeyValueSet { .. })).count();
        assert_eq!(sets, if execution == 1 { 150 } else { 50 }, "it failed in the turn that went over");
        assert_eq!(client.get_kv_all_values(instance).await.unwrap().len(), MAX_KV_KEYS);
    }
    client.start_orchestration("three", "Collects", "100 50").await.unwrap();
    assert_eq!(output(ended(&client, "three").await), "150");
    client.start_orchestration("four", "Replaces", "").await.unwrap();
    assert_eq!(output(ended(&client, "four").await), "149");
    runtime.shutdown(None).await;
}

/// Prunes keys that are older than now, in the turn that sets a key, and in the same turn again.
async fn prunes(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.set_kv_value("a", "1");
    ctx.schedule_timer(Duration::from_millis(50)).await;
    let now = ctx.utc_now().await?.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    ctx.set_kv_value("b", "2");
    let pruned = ctx.prune_kv_values_updated_before(now);
    ctx.set_kv_value("c", "3");
    let pruned_at_once = ctx.prune_kv_values_updated_before(u64::MAX);
    ctx.set_kv_value("d", "4");
    ctx.schedule_wait("first").await;
    ctx.schedule_wait("second").await;
    Ok(format!("{pruned} {pruned_at_once} {:?}", ctx.get_kv_all_keys()))
}

/// B9, 11.3: the runtime is restarted with nothing cached, so every turn replays at another time than it ran.
#[tokio::test]
async fn pruning_by_age_does_not_depend_on_when_it_is_replayed() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let start = |store: Arc<dyn Provider>| async move {
        let orchestrations = OrchestrationRegistry::builder().register("Prunes", prunes).build();
        let options = RuntimeOptions { execution_cache_size: 0, ..quick_options() };
        node(&store, ActivityRegistry::default(), orchestrations, options).await
    };
    let waits_for = |event: &'static str| move |recorded: &duroxide::Event| matches!(&recorded.kind, EventKind::ExternalSubscribed { name } if name == event);
    client.start_orchestration("i", "Prunes", "").await.unwrap();
    for event in ["first", "second"] {
        let runtime = start(Arc::clone(&store)).await;
        recorded(&client, "i", waits_for(event)).await;
        runtime.shutdown(None).await;
        client.raise_event("i", event, "").await.unwrap();
    }
    let runtime = start(Arc::clone(&store)).await;
    assert_eq!(output(ended(&client, "i").await), r#"1 2 ["d"]"#);
    let history = client.read_execution_history("i", 1).await.unwrap();
    let cleared: Vec<_> = history
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::KeyValueCleared { key } => Some(key.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(cleared, ["a", "b", "c"]);
    assert_eq!(client.get_kv_value("i", "d").await.unwrap().as_deref(), Some("4"));
    runtime.shutdown(None).await;
}
