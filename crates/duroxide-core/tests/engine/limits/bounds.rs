//! Every bound at its limit and one beyond, also those that take much data (D23a, 15.2).

use std::task::Poll;

use duroxide_core::{
    OrchestrationContext, RuntimeLimits,
    engine::{Outcome, Turn},
    limits::{
        MAX_CARRY_FORWARD_EVENTS, MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES, MAX_SELF_WAKES,
        MAX_TAG_NAME_BYTES,
    },
};

use crate::story::*;

const PAYLOAD_MAX: usize = 1_000;
const ACTIONS_MAX: usize = 200;

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn exceeds(turn: &Turn) -> bool {
    matches!(&turn.outcome, Outcome::Failed { details } if details.display_message().contains(" exceed"))
}

/// Makes a test of code that asks for `n` of something after it was woken: the limit passes, one more does not.
macro_rules! bound {
    ($name:ident, $limit:expr, |$ctx:ident, $n:ident| $body:expr) => {
        #[test]
        fn $name() {
            let limit: usize = $limit;
            for $n in [limit, limit + 1] {
                let code = move |$ctx: OrchestrationContext, _| async move {
                    $ctx.schedule_wait("go").await;
                    $body
                };
                tell(code, |story| {
                    story.limits.max_payload_bytes = Some(PAYLOAD_MAX);
                    story.limits.max_actions_per_turn = Some(ACTIONS_MAX);
                    story.start();
                    let turn = story.turn([raised("go", "")]);
                    assert_eq!(exceeds(&turn), $n > limit, "{} of {limit}: {:?}", $n, turn.outcome);
                });
            }
        }
    };
}

bound!(a_custom_status, MAX_CUSTOM_STATUS_BYTES, |ctx, n| {
    ctx.set_custom_status(text(n));
    Ok(String::new())
});
bound!(a_value, MAX_KV_VALUE_BYTES, |ctx, n| {
    ctx.set_kv_value("k", text(n));
    Ok(String::new())
});
bound!(keys, MAX_KV_KEYS, |ctx, n| {
    (0..n).for_each(|key| ctx.set_kv_value(key.to_string(), ""));
    Ok(String::new())
});
bound!(a_tag, MAX_TAG_NAME_BYTES, |ctx, n| ctx.schedule_activity("a", "").with_tag(text(n)).await);
bound!(an_activity_input, PAYLOAD_MAX, |ctx, n| ctx.schedule_activity("a", text(n)).await);
bound!(an_activity_name, PAYLOAD_MAX, |ctx, n| ctx.schedule_activity(text(n), "").await);
bound!(a_session, PAYLOAD_MAX, |ctx, n| ctx.schedule_activity_on_session("a", "", text(n)).await);
bound!(a_child_input, PAYLOAD_MAX, |ctx, n| ctx.schedule_sub_orchestration("c", text(n)).await);
bound!(a_child_name, PAYLOAD_MAX, |ctx, n| ctx.schedule_sub_orchestration(text(n), "").await);
bound!(a_child_id, PAYLOAD_MAX, |ctx, n| ctx.schedule_sub_orchestration_with_id("c", text(n), "").await);
bound!(a_detached_input, PAYLOAD_MAX, |ctx, n| {
    ctx.schedule_orchestration("o", "other", text(n));
    Ok(String::new())
});
bound!(a_detached_name, PAYLOAD_MAX, |ctx, n| {
    ctx.schedule_orchestration(text(n), "other", "");
    Ok(String::new())
});
bound!(a_detached_id, PAYLOAD_MAX, |ctx, n| {
    ctx.schedule_orchestration("o", text(n), "");
    Ok(String::new())
});
bound!(an_event_name, PAYLOAD_MAX, |ctx, n| Ok(ctx.schedule_wait(text(n)).await));
bound!(a_queue_name, PAYLOAD_MAX, |ctx, n| Ok(ctx.dequeue_event(text(n)).await));
bound!(a_key, PAYLOAD_MAX, |ctx, n| {
    ctx.set_kv_value(text(n), "");
    Ok(String::new())
});
bound!(a_cleared_key, PAYLOAD_MAX, |ctx, n| {
    ctx.clear_kv_value(text(n));
    Ok(String::new())
});
bound!(an_output, PAYLOAD_MAX, |ctx, n| {
    drop(ctx);
    Ok(text(n))
});
bound!(a_failure_text, PAYLOAD_MAX, |ctx, n| {
    drop(ctx);
    Err(text(n))
});
// The text that users see counts, with its prefix.
bound!(a_panic_text, PAYLOAD_MAX - "orchestration panicked: ".len(), |ctx, n| {
    drop(ctx);
    panic!("{}", text(n))
});
bound!(a_next_input, PAYLOAD_MAX, |ctx, n| ctx.continue_as_new(text(n)).await);
bound!(actions_of_one_turn, ACTIONS_MAX, |ctx, n| {
    (0..n).for_each(|_| ctx.set_custom_status(""));
    Ok(String::new())
});

/// 15.2: the terminal event is not counted; the other events of the turn are.
#[test]
fn the_length_of_a_history() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_wait("go").await;
        (0..7).for_each(|_| ctx.set_custom_status(""));
        Ok(ctx.schedule_wait("end").await)
    };
    // Start, wait, event, seven changes, wait.
    for (max, fits) in [(11, true), (10, false)] {
        tell(code, |story| {
            story.limits.max_history_events = Some(max);
            story.start();
            assert_eq!(!exceeds(&story.turn([raised("go", "")])), fits, "{max}");
        });
    }
}

/// 2.9: so many times in a row, and an event begins the count anew.
#[test]
fn wakes_of_its_own() {
    let code = |wakes: usize| {
        move |ctx: OrchestrationContext, _| async move {
            for _ in 0..2 {
                ctx.schedule_wait("go").await;
                let mut left = wakes;
                std::future::poll_fn(move |cx| {
                    if left == 0 {
                        return Poll::Ready(());
                    }
                    left -= 1;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
            }
            Ok(String::new())
        }
    };
    tell(code(MAX_SELF_WAKES), |story| {
        story.start();
        assert_eq!(story.turn([raised("go", "")]).outcome, Outcome::Running);
        assert_eq!(story.turn([raised("go", "")]).outcome, completed(""));
    });
    tell(code(MAX_SELF_WAKES + 1), |story| {
        story.start();
        assert!(failure(&story.turn([raised("go", "")])).starts_with("infrastructure:quiescence_loop:"));
    });
}

/// 8.3: all unread messages are carried, in order over all names, however many: none is ever dropped.
#[test]
fn messages_carried_over_continue_as_new() {
    let reads_one = |ctx: OrchestrationContext, _| async move {
        ctx.dequeue_event("q0").await;
        ctx.continue_as_new("").await
    };
    let reads_all = |ctx: OrchestrationContext, count: String| async move {
        let mut seen = Vec::new();
        for number in 1..=count.parse::<usize>().unwrap() {
            seen.push(ctx.dequeue_event(format!("q{}", number % 3)).await);
        }
        ctx.schedule_wait("end").await;
        Ok(format!(
            "{} {}",
            seen.len(),
            seen.iter().enumerate().all(|(at, seen)| *seen == (at + 1).to_string())
        ))
    };
    for count in [MAX_CARRY_FORWARD_EVENTS, MAX_CARRY_FORWARD_EVENTS + 1, 1_000, 1_001, 2_500] {
        let mut first = Story::new(reads_one, Mode::Live);
        first.start();
        let messages = (0..=count).map(|number| queued(&format!("q{}", number % 3), &number.to_string()));
        let Outcome::ContinuedAsNew(next) = first.turn(messages).outcome else { panic!("it continues") };
        assert_eq!(next.carried.len(), count);
        for (stored, mode) in [(false, Mode::Live), (true, Mode::Replayed)] {
            let mut second = Story::new(reads_all, mode);
            second.seed.carried = next.carried.clone();
            second.seed.input = count.to_string();
            if stored {
                second.history = second.seed.clone().into_events(Default::default());
            }
            second.start();
            assert_eq!(second.turn([raised("end", "")]).outcome, completed(&format!("{count} true")));
        }
    }
}

/// A17.4
#[test]
fn the_limits_without_options() {
    let RuntimeLimits { max_payload_bytes, max_history_events, max_mailbox_messages, max_actions_per_turn } =
        RuntimeLimits::default();
    assert_eq!((max_payload_bytes, max_history_events), (Some(16 * 1_024 * 1_024), Some(1_000_000)));
    assert_eq!((max_mailbox_messages, max_actions_per_turn), (Some(100_000), Some(100_000)));
}

/// 15.2: a limit that is switched off is not there.
#[test]
fn no_limit_is_no_limit() {
    let code = |ctx: OrchestrationContext, _| async move {
        (0..100_001).for_each(|_| ctx.set_custom_status(""));
        Ok(text((16 << 20) + 1))
    };
    let mut story = Story::new(code, Mode::Live);
    story.limits = RuntimeLimits {
        max_payload_bytes: None,
        max_history_events: None,
        max_mailbox_messages: None,
        max_actions_per_turn: None,
    };
    assert!(matches!(story.start().outcome, Outcome::Completed { .. }));
}
