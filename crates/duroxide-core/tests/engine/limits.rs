//! A turn over a limit fails the execution, keeps the events that arrived and discards the calls of the code (15.1).

mod bounds;
mod held_bytes;

use std::time::Duration;

use duroxide_core::{
    OrchestrationContext, WorkItem,
    engine::{Outcome, Turn},
    limits::{MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES, MAX_TAG_NAME_BYTES},
};

use crate::story::*;

/// Each case waits for an event and then goes over one limit.
#[track_caller]
fn assert_over(turn: &Turn, story: &Story, text: &str) {
    assert!(failure(turn).contains(text), "expected `{text}` in `{}`", failure(turn));
    assert_eq!(
        story.lines()[1..],
        ["2 ExternalSubscribed", "3 ExternalEvent", "4 OrchestrationFailed"],
        "B7: one terminal event, nothing of what went over the limit"
    );
    assert!(turn.messages.is_empty() && turn.activities.is_empty());
}

macro_rules! over {
    ($name:ident, $text:expr, |$ctx:ident| $body:expr) => {
        #[test]
        fn $name() {
            tell(
                |$ctx: OrchestrationContext, _| async move {
                    $ctx.schedule_wait("go").await;
                    $body
                },
                |story| {
                    story.limits.max_payload_bytes = Some(1_000);
                    story.limits.max_actions_per_turn = Some(200);
                    story.start();
                    let turn = story.turn([raised("go", "")]);
                    assert_over(&turn, story, $text);
                },
            );
        }
    };
}

over!(custom_status, "Custom status size (262145 bytes) exceeds limit (262144 bytes)", |ctx| {
    ctx.set_custom_status("x".repeat(MAX_CUSTOM_STATUS_BYTES + 1));
    Ok("the child says it is done".into())
});
over!(kv_value, "KV value for key 'k' (65537 bytes) exceeds limit (65536 bytes)", |ctx| {
    ctx.set_kv_value("k", "x".repeat(MAX_KV_VALUE_BYTES + 1));
    Ok(String::new())
});
over!(kv_keys, "KV key count (151) exceeds limit (150)", |ctx| {
    for n in 0..=MAX_KV_KEYS {
        ctx.set_kv_value(n.to_string(), "");
    }
    Ok(String::new())
});
over!(tag, "Activity 'a' tag size (257 bytes) exceeds limit (256 bytes)", |ctx| {
    ctx.schedule_activity("a", "").with_tag("x".repeat(MAX_TAG_NAME_BYTES + 1)).await
});
over!(input, "Activity input size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_activity("a", "x".repeat(1_001)).await
});
over!(child_input, "Sub-orchestration input size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_sub_orchestration("child", "x".repeat(1_001)).await
});
over!(detached_input, "Orchestration input size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_orchestration("other", "o", "x".repeat(1_001));
    Ok(String::new())
});
over!(next_input, "Continue-as-new input size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.continue_as_new("x".repeat(1_001)).await
});
over!(failure_text, "Orchestration output size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    let _ = &ctx;
    Err("x".repeat(1_001))
});
over!(panic_text, "exceeds limit (1000 bytes)", |ctx| {
    let _ = &ctx;
    panic!("{}", "x".repeat(1_001))
});
over!(activity_name, "Activity name size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_activity("x".repeat(1_001), "").await
});
over!(session_id, "Session id size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_activity_on_session("a", "", "x".repeat(1_001)).await
});
over!(child_name, "Sub-orchestration name size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_sub_orchestration("x".repeat(1_001), "").await
});
over!(child_id, "Sub-orchestration instance id size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_sub_orchestration_with_id("child", "x".repeat(1_001), "").await
});
over!(detached_id, "Orchestration instance id size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.schedule_orchestration("other", "x".repeat(1_001), "");
    Ok(String::new())
});
over!(event_name, "Event name size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    Ok(ctx.schedule_wait("x".repeat(1_001)).await)
});
over!(queue_name, "Queue name size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    Ok(ctx.dequeue_event("x".repeat(1_001)).await)
});
over!(kv_key, "KV key size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    ctx.set_kv_value("x".repeat(1_001), "");
    Ok(String::new())
});
over!(output, "Orchestration output size (1001 bytes) exceeds limit (1000 bytes)", |ctx| {
    let _ = &ctx;
    Ok("x".repeat(1_001))
});
over!(actions, "Actions in one turn (201) exceed limit (200)", |ctx| {
    for _ in 0..201 {
        ctx.schedule_orchestration("o", "other", "");
    }
    Ok(String::new())
});

/// 15.2, 2.14: the limit is one turn's. A replay repeats the actions of all turns, and a turn after it may ask for as
/// many again.
#[test]
fn a_long_execution_may_have_more_actions_in_all_than_one_turn_may() {
    let rounds_of = |actions: usize| {
        move |ctx: OrchestrationContext, _| async move {
            for _ in 0..5 {
                ctx.schedule_wait("go").await;
                // The next wait is an action of the same turn.
                for _ in 1..actions {
                    ctx.set_kv_value("k", "v");
                }
            }
            Ok(String::new())
        }
    };
    tell(rounds_of(10), |story| {
        story.limits.max_actions_per_turn = Some(10);
        story.start();
        for _ in 0..4 {
            assert_eq!(story.turn([raised("go", "")]).outcome, Outcome::Running);
        }
        assert_eq!(story.turn([raised("go", "")]).outcome, completed(""));
    });
    tell(rounds_of(11), |story| {
        story.limits.max_actions_per_turn = Some(10);
        story.start();
        assert_eq!(failure(&story.turn([raised("go", "")])), "Actions in one turn (11) exceed limit (10)");
    });
}

/// 15.2: the limit may have been higher when the recorded turns ran; it applies to new turns only.
#[test]
fn a_lowered_limit_does_not_apply_to_recorded_turns() {
    let code = |ctx: OrchestrationContext, _| async move {
        for key in 0..50 {
            ctx.set_kv_value(key.to_string(), "");
        }
        Ok(ctx.schedule_wait("end").await)
    };
    let mut story = Story::new(code, Mode::Replayed);
    story.start();
    story.limits.max_actions_per_turn = Some(1);
    assert_eq!(story.turn([raised("end", "done")]).outcome, completed("done"));
}

/// 15.2: calls of changed code beyond its record belong to the turn after the replay, whose limit bounds them.
#[test]
fn actions_that_no_event_repeats_count_in_the_turn_after_the_replay() {
    let code = |actions: usize| {
        move |ctx: OrchestrationContext, _| async move {
            ctx.schedule_wait("go").await;
            for _ in 0..actions {
                ctx.set_kv_value("k", "v");
            }
            Ok(ctx.schedule_wait("end").await)
        }
    };
    let run = |actions| {
        let mut story = Story::new(code(0), Mode::Replayed);
        story.limits.max_actions_per_turn = Some(10);
        story.start();
        story.deploy(code(actions));
        story.turn([raised("go", "")])
    };
    assert_eq!(run(9).outcome, Outcome::Running);
    assert_eq!(failure(&run(10)), "Actions in one turn (11) exceed limit (10)");
    let mut story = Story::new(code(0), Mode::Replayed);
    story.limits.max_actions_per_turn = Some(10);
    story.start();
    story.turn([raised("go", "")]);
    story.deploy(code(1_000));
    assert!(failure(&story.turn([])).contains("schedule mismatch"), "the record has no key-value event");
}

/// 15.1: work that was recorded before is cancelled with the rest, down to the last recorded event.
#[test]
fn a_turn_over_a_limit_cancels_the_work_of_earlier_turns() {
    let code = |statuses: usize| {
        move |ctx: OrchestrationContext, _| async move {
            let work = ctx.schedule_activity("a", "");
            (0..statuses).for_each(|_| ctx.set_custom_status(""));
            work.await
        }
    };
    let mut story = Story::new(code(0), Mode::Replayed);
    story.limits.max_actions_per_turn = Some(10);
    story.start();
    story.deploy(code(11));
    let turn = story.turn([]);
    assert_eq!(failure(&turn), "Actions in one turn (11) exceed limit (10)");
    assert_eq!(turn.cancelled_activities, [2]);
    assert_eq!(story.lines()[2..], ["3 ActivityCancelRequested <- 2", "4 OrchestrationFailed"]);
}

/// 15.2
#[test]
fn a_history_that_grows_too_long_fails() {
    tell(
        |ctx, _| async move {
            loop {
                ctx.schedule_wait("e").await;
            }
        },
        |story| {
            story.limits.max_history_events = Some(6);
            story.start();
            story.turn([raised("e", "")]);
            story.turn([raised("e", "")]);
            let turn = story.turn([raised("e", "")]);
            assert_eq!(failure(&turn), "History length (8 events) exceeds limit (6)");
        },
    );
}

/// B8, 11.4: keys of all turns count, alive ones only.
#[test]
fn the_key_limit_counts_all_turns() {
    let code = |clears: bool| {
        move |ctx: OrchestrationContext, _| async move {
            for n in 0..=MAX_KV_KEYS {
                ctx.set_kv_value(n.to_string(), "");
                if clears && n > 0 {
                    ctx.clear_kv_value((n - 1).to_string());
                }
                ctx.schedule_timer(Duration::from_millis(1)).await;
            }
            Ok(ctx.get_kv_length().to_string())
        }
    };
    let run = |clears| {
        let mut story = Story::new(code(clears), Mode::Live);
        let mut turn = story.start();
        while let Some(duroxide_core::WorkItem::TimerFired { id, .. }) = turn.messages.first() {
            turn = story.turn([timer_fired(*id)]);
        }
        turn
    };
    assert_eq!(failure(&run(false)), "KV key count (151) exceeds limit (150)");
    assert_eq!(run(true).outcome, completed("1"));
}

/// 2.9, B24
#[test]
fn code_that_wakes_itself_forever_fails() {
    tell(
        |ctx, _| async move {
            ctx.schedule_wait("go").await;
            std::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                std::task::Poll::<()>::Pending
            })
            .await;
            Ok(String::new())
        },
        |story| {
            story.start();
            assert!(failure(&story.turn([raised("go", "")])).starts_with("infrastructure:quiescence_loop:"));
        },
    );
}

/// 5.2, 6.2: a child that the code drops is cancelled, also if the turn that drops it goes over a limit or fails by an
/// error of the engine. A child of the same turn was never started, and one that the code still holds keeps running.
#[test]
fn a_child_dropped_in_a_turn_that_fails_is_cancelled() {
    for how in ["limit", "self-waking"] {
        tell(
            move |ctx, _| async move {
                let dropped = ctx.schedule_sub_orchestration("dropped", "");
                let held = ctx.schedule_sub_orchestration("held", "");
                ctx.schedule_wait("go").await;
                drop(dropped);
                drop(ctx.schedule_sub_orchestration("new", ""));
                if how == "limit" {
                    ctx.set_custom_status("x".repeat(MAX_CUSTOM_STATUS_BYTES + 1));
                    ctx.schedule_wait("never").await;
                } else {
                    std::future::poll_fn(|cx| {
                        cx.waker().wake_by_ref();
                        std::task::Poll::<()>::Pending
                    })
                    .await;
                }
                held.await
            },
            |story| {
                story.start();
                let turn = story.turn([raised("go", "")]);
                assert!(matches!(turn.outcome, Outcome::Failed { .. }), "{how}: {:?}", turn.outcome);
                let cancel = WorkItem::CancelInstance {
                    instance: "order::sub::2".into(),
                    reason: "parent dropped sub-orchestration future".into(),
                };
                assert_eq!(turn.messages, [cancel], "{how}");
            },
        );
    }
}
