//! A mix of workflows that uses everything a round can hold, and says in its output whether all of it happened once.

use std::{path::Path, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{ended, node, notes::Notes, open_in, output, quick_options};

/// The kinds, with their outputs for the input `x`.
pub const KINDS: [(&str, &str); 5] = [
    ("Sequence", "x1234"),
    ("FanOut", "x0 x1 x2 x3 x4"),
    ("Timers", "xat"),
    ("Family", "xa1234 xb1234"),
    ("Again", "x...."),
];

/// Short leases, so that items that died with their process more than once are soon ready, but not so short that a slow machine
/// loses them; and patience, because every death is an attempt for everything it held.
pub fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        orchestrator_lock_timeout: Duration::from_millis(1_500),
        worker_lock_timeout: Duration::from_secs(2),
        max_attempts: 1_000,
        ..quick_options()
    }
}

/// The role of a worker process: it works until it is killed.
pub async fn work(folder: &Path) {
    let store = open_in(folder).await;
    let _runtime = node(&store, activities(&Notes::new(folder, "notes")), orchestrations(), options()).await;
    std::future::pending::<()>().await;
}

/// `Append` joins the two parts of its input, and leaves a note. It takes a moment, so that there is something to kill on
/// fast machines too.
pub fn activities(notes: &Notes) -> ActivityRegistry {
    let notes = notes.clone();
    ActivityRegistry::builder()
        .register("Append", move |ctx: ActivityContext, input: String| {
            notes.add(format!("{} {input}", ctx.instance_id()));
            async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                Ok(input.replace('+', ""))
            }
        })
        .build()
}

pub fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Sequence", sequence)
        .register("FanOut", fan_out)
        .register("Timers", timers)
        .register("Family", family)
        .register("Again", again)
        .build()
}

async fn append(
    ctx: &OrchestrationContext,
    text: &str,
    more: impl std::fmt::Display,
) -> Result<String, String> {
    ctx.schedule_activity("Append", format!("{text}+{more}")).await
}

async fn sequence(ctx: OrchestrationContext, mut text: String) -> Result<String, String> {
    for step in 1..=4 {
        text = append(&ctx, &text, step).await?;
        ctx.set_kv_value("step", step.to_string());
        ctx.set_custom_status(text.clone());
    }
    Ok(text)
}

async fn fan_out(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    let calls = (0..5).map(|number| append(&ctx, &text, number)).collect();
    let results: Result<Vec<String>, String> = ctx.join(calls).await.into_iter().collect();
    Ok(results?.join(" "))
}

/// Two timers, one of which is dropped unfired.
async fn timers(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    let activity = ctx.schedule_activity("Append", format!("{text}+a"));
    let timer = ctx.schedule_timer(Duration::from_secs(3_600));
    let text = match ctx.select2(activity, timer).await {
        duroxide::Either2::First(text) => text?,
        duroxide::Either2::Second(()) => return Err("an hour has passed".to_owned()),
    };
    ctx.schedule_timer(Duration::from_millis(30)).await;
    append(&ctx, &text, "t").await
}

async fn family(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    let child = |name| ctx.schedule_sub_orchestration("Sequence", format!("{text}{name}"));
    let results: Result<Vec<String>, String> =
        ctx.join(vec![child("a"), child("b")]).await.into_iter().collect();
    Ok(results?.join(" "))
}

/// One activity per execution.
async fn again(ctx: OrchestrationContext, text: String) -> Result<String, String> {
    if text.ends_with("....") {
        return Ok(text);
    }
    let text = append(&ctx, &text, ".").await?;
    ctx.continue_as_new(text).await
}

/// Starts `copies` instances of each kind.
pub async fn start(client: &Client, copies: usize) {
    for copy in 0..copies {
        start_copy(client, copy).await;
    }
}

/// Starts an instance of each kind.
pub async fn start_copy(client: &Client, copy: usize) {
    for (kind, _) in KINDS {
        client.start_orchestration(format!("{kind}-{copy}"), kind, "x").await.unwrap();
    }
}

/// Waits until all have completed, with the right output.
pub async fn completed(client: &Client, copies: usize) {
    for copy in 0..copies {
        for (kind, expected) in KINDS {
            let instance = format!("{kind}-{copy}");
            assert_eq!(output(ended(client, &instance).await), expected, "{instance}");
        }
    }
}
