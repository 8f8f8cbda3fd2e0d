//! Code that does not fit its history fails with both sides of the mismatch (4.5, B11).

mod divergence;

use std::{future::Future, time::Duration};

use duroxide_core::{ConfigErrorKind, ErrorDetails, Event, OrchestrationContext, engine::Outcome};

use crate::story::*;

/// Runs `old` through its first turn and `first`, then `new` from the stored history, woken by `wake`.
fn redeploy<F, Fut, G, Gut>(
    old: F,
    first: Option<duroxide_core::WorkItem>,
    new: G,
    wake: duroxide_core::WorkItem,
) -> Outcome
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
    G: Fn(OrchestrationContext, String) -> Gut + Send + Sync + 'static,
    Gut: Future<Output = Result<String, String>> + Send + 'static,
{
    let mut story = Story::new(old, Mode::Live);
    story.start();
    if let Some(first) = first {
        story.turn([first]);
    }
    story.deploy(new);
    story.turn([wake]).outcome
}

#[track_caller]
fn assert_nondeterministic(outcome: &Outcome, text: &str) {
    match outcome {
        Outcome::Failed {
            details:
                ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, resource, message: Some(m) },
        } => {
            assert_eq!(resource, "");
            assert!(m.contains(text), "expected `{text}` in `{m}`");
        }
        other => panic!("expected nondeterminism, got {other:?}"),
    }
}

async fn waits_after_the_activity(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_activity("a", "1").await?;
    ctx.schedule_timer(Duration::from_secs(1)).await;
    Ok(String::new())
}

/// B11 (1), 2.8
#[test]
fn code_that_returns_early_is_found() {
    let new = |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("a", "1").await };
    let outcome = redeploy(waits_after_the_activity, Some(activity_completed(2, "x")), new, timer_fired(4));
    assert_nondeterministic(
        &outcome,
        "orchestration ended before its recorded history: event 4 (TimerCreated) was not reached",
    );
}

#[test]
fn unchanged_code_passes() {
    let first = Some(activity_completed(2, "x"));
    let outcome = redeploy(waits_after_the_activity, first, waits_after_the_activity, timer_fired(4));
    assert_eq!(outcome, completed(""));
}

/// B11 (2)
#[test]
fn missing_key_and_status_changes_are_found() {
    let wait = |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("w").await) };
    let sets_key = |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("k", "v");
        Ok(ctx.schedule_wait("w").await)
    };
    let sets_status = |ctx: OrchestrationContext, _| async move {
        ctx.set_custom_status("s");
        Ok(ctx.schedule_wait("w").await)
    };
    assert_nondeterministic(&redeploy(sets_key, None, wait, raised("w", "")), "kv set mismatch: action=");
    assert_nondeterministic(
        &redeploy(sets_status, None, wait, raised("w", "")),
        "custom status mismatch: action=",
    );
    let nothing = |_: OrchestrationContext, _| std::future::pending();
    assert_nondeterministic(
        &redeploy(wait, None, nothing, raised("w", "")),
        "history schedule but no emitted action (event 2)",
    );
}

/// B11 (4)
#[test]
fn another_child_id_is_found() {
    let child = |id: &'static str| {
        move |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration_with_id("c", id, "").await
        }
    };
    let automatic =
        |ctx: OrchestrationContext, _| async move { ctx.schedule_sub_orchestration("c", "").await };
    for outcome in [
        redeploy(child("x"), None, child("y"), child_completed(2, "")),
        redeploy(child("x"), None, automatic, child_completed(2, "")),
        redeploy(automatic, None, child("x"), child_completed(2, "")),
    ] {
        assert_nondeterministic(&outcome, "schedule mismatch: action=StartSubOrchestration");
    }
    assert_eq!(redeploy(child("x"), None, child("x"), child_completed(2, "ok")), completed("ok"));
}

/// B11 (5)
#[test]
fn a_timer_that_became_a_wait_is_found() {
    let timer = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_timer(Duration::from_secs(1)).await;
        Ok(String::new())
    };
    let wait = |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("w").await) };
    let outcome = redeploy(timer, None, wait, timer_fired(2));
    assert_nondeterministic(&outcome, "schedule mismatch: action=WaitExternal");
    assert_nondeterministic(&outcome, "vs event=TimerCreated");
}

/// 4.3: the version a child was asked for is not recorded, so it is not compared.
#[test]
fn another_child_version_is_not_compared() {
    let child = |version: &'static str| {
        move |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration_versioned("c", Some(version.into()), "").await
        }
    };
    assert_eq!(redeploy(child("1.0.0"), None, child("2.0.0"), child_completed(2, "ok")), completed("ok"));
}

/// 4.4
#[test]
fn a_missing_drop_is_found() {
    let drops = |ctx: OrchestrationContext, _| async move {
        drop(ctx.schedule_activity("a", ""));
        Ok(ctx.schedule_wait("w").await)
    };
    let holds = |ctx: OrchestrationContext, _| async move {
        let _held = ctx.schedule_activity("a", "");
        Ok(ctx.schedule_wait("w").await)
    };
    let outcome = redeploy(drops, None, holds, raised("w", ""));
    assert_nondeterministic(&outcome, "cancellation mismatch (activities): history says [2]");
    assert_eq!(redeploy(holds, None, drops, raised("w", "more is allowed")), completed("more is allowed"));
}

/// 2.4.3
#[test]
fn messages_for_unknown_or_other_schedules_fail_the_turn() {
    let code = |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("a", "").await };
    for (message, text) in [
        (activity_completed(9, ""), "no matching schedule for completion id=9"),
        (timer_fired(9), "no matching schedule for timer id=9"),
        (child_completed(9, ""), "no matching schedule for sub-orchestration id=9"),
        (timer_fired(2), "completion kind mismatch for id=2, expected 'activity', got 'timer'"),
    ] {
        tell(code, |story| {
            story.start();
            assert_nondeterministic(&story.turn([message.clone()]).outcome, text);
        });
    }
}

/// 4.4: for each kind of future, with both sides of the mismatch. Dropping more than was recorded is allowed.
#[test]
fn a_drop_of_each_kind_must_be_repeated() {
    let code = |keeps: bool| {
        move |ctx: OrchestrationContext, kind: String| async move {
            let activity = ctx.schedule_activity("a", "");
            let child = ctx.schedule_sub_orchestration_with_id("c", "child", "");
            let wait = ctx.schedule_wait("w");
            let read = ctx.dequeue_event("q");
            ctx.schedule_wait("go").await;
            let mut kept = (Some(activity), Some(child), Some(wait), Some(read));
            if !keeps {
                match kind.as_str() {
                    "activities" => drop(kept.0.take()),
                    "sub-orchestrations" => drop(kept.1.take()),
                    "external waits" => drop(kept.2.take()),
                    _ => drop(kept.3.take()),
                }
            }
            let end = ctx.schedule_wait("end").await;
            drop(kept);
            Ok(end)
        }
    };
    let kinds =
        [("activities", 2), ("sub-orchestrations", 3), ("external waits", 4), ("persistent waits", 5)];
    for (kind, id) in kinds {
        let redeployed = |before: bool, after: bool| {
            let mut story = Story::new(code(before), Mode::Live);
            story.seed.input = kind.into();
            story.start();
            story.turn([raised("go", "")]);
            story.deploy(code(after));
            story.turn([raised("end", "done")]).outcome
        };
        let text =
            format!("cancellation mismatch ({kind}): history says [{id}] were dropped, the code dropped []");
        assert_nondeterministic(&redeployed(false, true), &text);
        assert_eq!(redeployed(true, false), completed("done"), "more is allowed: {kind}");
        assert_eq!(redeployed(false, false), completed("done"));
    }
}

/// 4.2, I04: a stored history that makes no sense is reported, not run.
#[test]
fn corrupted_histories_are_reported() {
    let code = |ctx: OrchestrationContext, _: String| async move { Ok(ctx.schedule_wait("w").await) };
    type Damage = fn(&mut Vec<Event>);
    let broken: [(Damage, &str); 4] = [
        (|history| drop(history.remove(0)), "corrupted history: first event must be OrchestrationStarted"),
        (
            |history| {
                let kind = duroxide_core::EventKind::TimerFired { fire_at_ms: 1 };
                history.push(Event::with_event_id(3, INSTANCE, 1, Some(9), kind));
            },
            "completion without open schedule (event 3)",
        ),
        (|history| history[1].event_id = 7, "corrupted history: expected event 2, found 7"),
        (
            |history| {
                let kind = duroxide_core::EventKind::TimerFired { fire_at_ms: 1 };
                history.push(Event::with_event_id(3, INSTANCE, 1, Some(2), kind));
            },
            "completion kind mismatch: expected timer (event 3)",
        ),
    ];
    for (damage, text) in broken {
        let mut story = Story::new(code, Mode::Replayed);
        story.start();
        damage(&mut story.history);
        let mut reloaded = Story::new(code, Mode::Replayed);
        reloaded.history = story.history;
        assert_nondeterministic(&reloaded.reload_and_turn([raised("w", "")]).outcome, text);
    }
}

/// 6.6: even then the parent is known and open work is cancelled.
#[test]
fn a_nondeterministic_end_takes_open_work_back() {
    let mut story = Story::new(waits_after_the_activity, Mode::Live);
    story.seed.parent =
        Some(duroxide_core::ParentLink { instance: "p".into(), event_id: 4, execution_id: Some(1) });
    story.start();
    story.deploy(|ctx, _| async move { Ok(ctx.schedule_wait("w").await) });
    let turn = story.turn([raised("w", "")]);
    assert_nondeterministic(&turn.outcome, "schedule mismatch");
    assert!(failure(&turn).ends_with("(event 2)"), "the place in the history: {}", failure(&turn));
    assert_eq!(turn.cancelled_activities, [2]);
    assert_eq!(turn.parent.unwrap().instance, "p");
    assert_eq!(
        story.lines()[2..],
        ["3 ExternalEvent", "4 ActivityCancelRequested <- 2", "5 OrchestrationFailed"]
    );
}
