//! External events go to waits by position; queues keep their messages.

use duroxide_core::engine::Outcome;

use crate::story::*;

/// 9.1
#[test]
fn events_go_to_the_oldest_open_wait_of_their_name() {
    tell(
        |ctx, _| async move {
            let (first, second) = (ctx.schedule_wait("e"), ctx.schedule_wait("e"));
            let (b, a) = ctx.join2(second, first).await;
            Ok(format!("{a}{b}"))
        },
        |story| {
            story.start();
            story.turn([raised("other", "x"), raised("e", "1")]);
            assert_eq!(story.turn([raised("e", "2")]).outcome, completed("12"));
        },
    );
}

/// 9.1, 9.3, S4.28, S4.42, C14: an early event is recorded, is not delivered and does not wake a later wait.
#[test]
fn an_early_event_is_not_delivered_and_a_later_one_is() {
    tell(
        |ctx, _| async move {
            ctx.schedule_activity("a", "").await?;
            Ok(ctx.schedule_wait("e").await)
        },
        |story| {
            story.start();
            story.turn([raised("e", "early")]);
            // In the batch of the subscription it is still early: completions come before new subscriptions.
            assert_eq!(
                story.turn([activity_completed(2, ""), raised("e", "also early")]).outcome,
                Outcome::Running
            );
            assert_eq!(
                story.turn([raised("e", "in time"), raised("e", "late")]).outcome,
                completed("in time")
            );
        },
    );
}

/// 2.4.4, C15: events have no id and are never deduplicated.
#[test]
fn equal_events_are_both_delivered() {
    tell(
        |ctx, _| async move {
            let a = ctx.schedule_wait("e").await;
            let b = ctx.schedule_wait("e").await;
            Ok(format!("{a}{b}"))
        },
        |story| {
            story.start();
            story.turn([raised("e", "x")]);
            assert_eq!(story.turn([raised("e", "x")]).outcome, completed("xx"));
        },
    );
}

/// 9.2: a value given to a wait that is dropped before it looked is lost with it.
#[test]
fn a_value_is_lost_with_its_wait() {
    tell(
        |ctx, _| async move {
            let unseen = ctx.schedule_wait("e");
            ctx.schedule_wait("go").await;
            drop(unseen);
            Ok(ctx.schedule_wait("e").await)
        },
        |story| {
            story.start();
            story.turn([raised("e", "lost")]);
            story.turn([raised("go", "")]);
            assert_eq!(story.turn([raised("e", "kept")]).outcome, completed("kept"));
        },
    );
}

/// 10.1, 10.3: messages wait until they are read, in order.
#[test]
fn a_queue_keeps_messages_until_they_are_read() {
    tell(
        |ctx, _| async move {
            ctx.schedule_wait("go").await;
            let mut read = String::new();
            for _ in 0..3 {
                read += &ctx.dequeue_event("q").await;
            }
            Ok(read)
        },
        |story| {
            story.start();
            story.turn([queued("q", "1"), queued("q", "2")]);
            assert_eq!(story.turn([raised("go", "")]).outcome, Outcome::Running);
            assert_eq!(story.turn([queued("q", "3")]).outcome, completed("123"));
        },
    );
}

/// 10.2, B26: an older read that is held keeps its place; dropping it loses no message.
#[test]
fn a_message_is_read_once_whatever_is_dropped() {
    tell(
        |ctx, _| async move {
            let held = ctx.dequeue_event("q");
            let second = ctx.dequeue_event("q").await;
            drop(held);
            let first = ctx.dequeue_event("q").await;
            ctx.dequeue_event("q").await;
            Ok(format!("{first}{second} and one too many"))
        },
        |story| {
            story.start();
            let turn = story.turn([queued("q", "m1"), queued("q", "m2")]);
            assert_eq!(turn.outcome, Outcome::Running, "the fourth read waits");
            assert_eq!(story.turn([queued("q", "m3")]).outcome, completed("m1m2 and one too many"));
        },
    );
}

/// B25: a select over two buffered queues has the same winner live and on replay.
#[test]
fn a_select_over_two_buffered_queues_is_stable() {
    tell(
        |ctx, _| async move {
            ctx.schedule_wait("go").await;
            let a = ctx.dequeue_event("q1");
            let b = ctx.dequeue_event("q2");
            let winner = ctx.select2(b, a).await.into_tuple();
            ctx.schedule_wait("end").await;
            Ok(format!("{winner:?}"))
        },
        |story| {
            story.start();
            story.turn([queued("q1", "one"), queued("q2", "two")]);
            story.turn([raised("go", "")]);
            assert_eq!(story.turn([raised("end", "")]).outcome, completed("(1, \"one\")"));
        },
    );
}

/// B24: draining a queue is not a self-waking loop.
#[test]
fn five_thousand_messages_are_read_in_one_turn() {
    const MESSAGES: usize = 5_000;
    tell(
        |ctx, _| async move {
            ctx.schedule_wait("go").await;
            let mut sum = 0;
            for _ in 0..MESSAGES {
                sum += ctx.dequeue_event("q").await.parse::<usize>().unwrap();
            }
            Ok(sum.to_string())
        },
        |story| {
            story.start();
            story.turn((0..MESSAGES).map(|n| queued("q", &n.to_string())));
            let expected = MESSAGES * (MESSAGES - 1) / 2;
            assert_eq!(story.turn([raised("go", "")]).outcome, completed(&expected.to_string()));
        },
    );
}

/// 2.9: a combinator that yields by waking itself is healthy as long as events are applied in between.
#[test]
fn a_child_of_a_join_may_read_more_messages_than_code_may_wake_itself() {
    const MESSAGES: usize = duroxide_core::limits::MAX_SELF_WAKES + 500;
    let mut story = Story::new(
        |ctx: duroxide_core::OrchestrationContext, _| async move {
            ctx.schedule_wait("go").await;
            let reader = async {
                for _ in 0..MESSAGES {
                    ctx.dequeue_event("q").await;
                }
            };
            ctx.join(vec![reader]).await;
            Ok("read".into())
        },
        Mode::Live,
    );
    story.start();
    story.turn((0..MESSAGES).map(|n| queued("q", &n.to_string())));
    assert_eq!(story.turn([raised("go", "")]).outcome, completed("read"));
}
