//! An orchestration whose input is a script, a letter per step.

use std::time::{Duration, UNIX_EPOCH};

use duroxide::{
    ActivityContext, OrchestrationContext, OrchestrationRegistry, runtime::registry::ActivityRegistry,
};

use crate::seeded_random::Luck;

const STEPS: &[u8] = b"aaajfpxgtrRwwqqkkKPZosScCbdnnGEX";
const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3_600);

/// A random script.
pub fn script(luck: &mut Luck) -> String {
    let steps = 1 + luck.below(8);
    (0..steps).map(|_| char::from(STEPS[luck.below(STEPS.len() as u64) as usize])).collect()
}

pub fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Script", run)
        .register_versioned("Script", "2.0.0", run)
        .build()
}

pub fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Echo", |_ctx, input| async move { Ok(input) })
        .register("Fail", |_ctx, _input| async { Err("as asked".to_owned()) })
        .register("Panic", |_ctx, _input| async { panic!("as asked") })
        .register("Stall", |ctx: ActivityContext, _input| async move {
            ctx.cancelled().await;
            Ok(String::new())
        })
        .build()
}

async fn run(ctx: OrchestrationContext, script: String) -> Result<String, String> {
    for (at, step) in script.char_indices() {
        let rest = &script[at + 1..];
        match step {
            'n' => return ctx.continue_as_new(rest).await,
            'E' => return Err("as asked".to_owned()),
            'X' => panic!("as asked"),
            'k' => ctx.set_kv_value(format!("key-{}", at % 3), script.clone()),
            'K' => ctx.clear_kv_value("key-0"),
            'Z' => ctx.clear_all_kv_values(),
            's' => ctx.set_custom_status(format!("at step {at}")),
            'S' => ctx.reset_custom_status(),
            'd' => ctx.schedule_orchestration("Script", format!("{}-d", ctx.instance_id()), "ak"),
            _ => wait_for(&ctx, step, at).await,
        }
    }
    Ok(format!("{} {:?}", script.len(), ctx.get_kv_all_keys()))
}

/// The steps that wait for something. Their results are part of the history and not used here.
async fn wait_for(ctx: &OrchestrationContext, step: char, at: usize) {
    let echo = || ctx.schedule_activity("Echo", at.to_string());
    match step {
        'a' => drop(echo().await),
        'j' => drop(ctx.join(vec![echo(), echo(), echo()]).await),
        'f' => drop(ctx.schedule_activity("Fail", "").await),
        'p' => drop(ctx.schedule_activity("Panic", "").await),
        'x' => drop(ctx.schedule_activity_on_session("Echo", "", format!("session-{}", at % 2)).await),
        'g' => drop(echo().with_tag("gpu").await),
        't' => ctx.schedule_timer(SHORT).await,
        'r' => drop(ctx.select2(echo(), ctx.schedule_timer(LONG)).await),
        'R' => drop(ctx.select2(ctx.schedule_timer(SHORT), ctx.schedule_activity("Stall", "")).await),
        'w' => drop(ctx.select2(ctx.schedule_wait("event"), ctx.schedule_timer(SHORT * 5)).await),
        'q' => drop(ctx.select2(ctx.dequeue_event("queue"), ctx.schedule_timer(SHORT * 5)).await),
        'c' => drop(ctx.schedule_sub_orchestration("Script", "aks").await),
        'C' => {
            let id = format!("{}-c", ctx.instance_id());
            drop(ctx.schedule_sub_orchestration_with_id("Script", id, "tnk").await);
        }
        'b' => {
            let child = ctx.schedule_sub_orchestration("Script", "RR");
            drop(ctx.select2(ctx.schedule_timer(SHORT), child).await);
        }
        'o' => drop(ctx.get_kv_value_from_instance("i-0", "key-0").await),
        'G' => drop(ctx.new_guid().await),
        'P' => {
            if let Ok(now) = ctx.utc_now().await {
                let millis = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
                ctx.prune_kv_values_updated_before(millis as u64);
            }
        }
        other => panic!("no step {other}"),
    }
}
