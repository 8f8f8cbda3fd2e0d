//! Audits: a replay of everything that is recorded does the same again, or the difference is named.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide_core::{
    Clock, Event, FnOrchestration, OrchestrationContext, RuntimeLimits,
    engine::{Setup, audit},
};
use futures::future::BoxFuture;

use crate::story::{ManualClock, Mode, Story, activity_completed, cancel, raised, timer_fired};

/// The difference that a replay finds.
fn audited<F>(history: &[Event], code: F) -> Result<(), String>
where
    F: Fn(OrchestrationContext, String) -> BoxFuture<'static, Result<String, String>> + Send + Sync + 'static,
{
    let setup = Setup {
        handler: Arc::new(FnOrchestration(code)),
        clock: Arc::new(ManualClock::default()) as Arc<dyn Clock>,
        limits: RuntimeLimits::default(),
        worker_id: None,
        kv: BTreeMap::new(),
    };
    audit(history.to_vec(), setup).map_err(|divergence| divergence.to_string())
}

fn order(ctx: OrchestrationContext, _: String) -> BoxFuture<'static, Result<String, String>> {
    Box::pin(async move {
        ctx.set_kv_value("k", "v");
        let loser = ctx.schedule_timer(Duration::from_secs(1));
        ctx.select2(ctx.schedule_activity("a", ""), loser).await;
        let (held, _timer) = (ctx.schedule_wait("held"), ctx.schedule_timer(Duration::from_secs(5)));
        let data = ctx.schedule_wait("w").await;
        ctx.set_custom_status("done");
        drop(held);
        Ok(data)
    })
}

/// Every turn of a healthy execution passes, to its end: calls of the last turn and breadcrumbs included.
#[test]
fn a_healthy_execution_passes_after_every_turn() {
    let mut story = Story::new(order, Mode::Live);
    story.start();
    assert_eq!(audited(&story.history, order), Ok(()));
    story.turn([activity_completed(4, "x")]);
    assert_eq!(audited(&story.history, order), Ok(()));
    let mut cancelled = Story::new(order, Mode::Live);
    cancelled.history.clone_from(&story.history);
    story.turn([raised("w", "done")]);
    assert_eq!(audited(&story.history, order), Ok(()));
    cancelled.turn([cancel("enough")]);
    assert_eq!(audited(&cancelled.history, order), Ok(()));
}

/// Code that ends in its first turn, and code that fails.
#[test]
fn ends_without_calls_and_failures_pass() {
    for fails in [false, true] {
        let code =
            move |_: OrchestrationContext, input: String| -> BoxFuture<'static, Result<String, String>> {
                Box::pin(async move { if fails { Err(input) } else { Ok(input) } })
            };
        let mut story = Story::new(code, Mode::Live);
        story.start();
        assert_eq!(audited(&story.history, code), Ok(()));
    }
}

/// Code whose nth run does something else.
#[test]
fn code_that_does_not_do_the_same_again_is_found() {
    let runs = Arc::new(AtomicU32::new(0));
    let code = {
        let runs = Arc::clone(&runs);
        move |ctx: OrchestrationContext, _: String| -> BoxFuture<'static, Result<String, String>> {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move {
                ctx.schedule_activity(format!("a{run}"), "").await?;
                Ok(run.to_string())
            })
        }
    };
    let mut story = Story::new(code.clone(), Mode::Live);
    story.start();
    let difference = audited(&story.history, code.clone()).unwrap_err();
    assert!(difference.contains("the code asked for ActivityScheduled { name: \"a1\""), "{difference}");
    // The same calls, and another result.
    story.turn([activity_completed(2, "x")]);
    runs.store(0, Ordering::SeqCst);
    assert_eq!(audited(&story.history, code.clone()), Ok(()));
    let other = |ctx: OrchestrationContext, _: String| -> BoxFuture<'static, Result<String, String>> {
        Box::pin(async move {
            ctx.schedule_activity("a0", "").await?;
            Ok("other".to_owned())
        })
    };
    let difference = audited(&story.history, other).unwrap_err();
    assert!(difference.contains("other"), "{difference}");
}

/// Code that makes more calls, or fewer, than its history has.
#[test]
fn code_that_waits_for_something_else_is_found() {
    let waits = |ctx: OrchestrationContext, _: String| -> BoxFuture<'static, Result<String, String>> {
        Box::pin(async move {
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok(ctx.schedule_wait("w").await)
        })
    };
    let more = |ctx: OrchestrationContext, _: String| -> BoxFuture<'static, Result<String, String>> {
        Box::pin(async move {
            ctx.schedule_timer(Duration::from_secs(1)).await;
            let _held = ctx.schedule_wait("w");
            Ok(ctx.schedule_wait("v").await)
        })
    };
    let mut story = Story::new(waits, Mode::Live);
    story.start();
    story.turn([timer_fired(2)]);
    let difference = audited(&story.history, more).unwrap_err();
    assert!(difference.contains("history says that it waits; the code asked for"), "{difference}");
    story.turn([raised("w", "")]);
    let difference = audited(&story.history, more).unwrap_err();
    assert!(difference.contains("the code asked for ExternalSubscribed { name: \"v\""), "{difference}");
}
