//! Joins, selects and dropped futures.

use std::time::Duration;

use crate::story::*;
use duroxide_core::{Either2, Either3, WorkItem, engine::Outcome};

/// 5.1: results come in argument order, also if the calls complete in another one.
#[test]
fn a_join_returns_results_in_argument_order() {
    tell(
        |ctx, _| async move {
            let calls = ["a", "b", "c"].map(|name| ctx.schedule_activity(name, "")).into();
            let results: Result<Vec<_>, _> = ctx.join(calls).await.into_iter().collect();
            Ok(results?.join(""))
        },
        |story| {
            story.start();
            story.turn([activity_completed(4, "3")]);
            let turn = story.turn([activity_completed(2, "1"), activity_completed(3, "2")]);
            assert_eq!(turn.outcome, completed("123"));
        },
    );
}

/// 5.1, 5.2, 5.3, 14.2: the first in history order wins; the losers are given up in the same round.
#[test]
fn a_select_drops_its_losers() {
    tell(
        |ctx, _| async move {
            let activity = ctx.schedule_activity("slow", "");
            let wait = ctx.schedule_wait("go");
            let timer = ctx.schedule_timer(Duration::from_secs(3600));
            let winner = ctx.select3(activity, wait, timer).await;
            ctx.schedule_wait("end").await;
            Ok(format!("{}", matches!(winner, Either3::Second(_))))
        },
        |story| {
            story.start();
            let turn = story.turn([raised("go", "x"), activity_completed(2, "too late")]);
            assert_eq!((&turn.cancelled_activities[..], &turn.cancelled_timers[..]), (&[2][..], &[4][..]));
            assert_eq!(
                story.lines()[4..],
                [
                    "5 ExternalEvent",
                    "6 ActivityCompleted <- 2",
                    "7 ExternalSubscribed",
                    "8 ActivityCancelRequested <- 2"
                ]
            );
            assert_eq!(story.turn([raised("end", "")]).outcome, completed("true"));
        },
    );
}

/// 5.3: scheduled and dropped in one turn: an activity or timer is recorded and never handed out, a child is
/// started and cancelled.
#[test]
fn a_call_dropped_in_its_own_turn_is_never_handed_out() {
    tell(
        |ctx, _| async move {
            drop(ctx.schedule_activity("a", ""));
            drop(ctx.schedule_timer(Duration::from_secs(1)));
            drop(ctx.schedule_sub_orchestration("c", ""));
            ctx.schedule_wait("end").await;
            Ok(String::new())
        },
        |story| {
            let turn = story.start();
            assert!(turn.activities.is_empty());
            assert_eq!(kinds(&turn.messages), ["StartOrchestration", "CancelInstance"]);
            assert!(matches!(
                &turn.messages[1],
                WorkItem::CancelInstance { instance, reason }
                    if instance == "order::sub::4" && reason == "parent dropped sub-orchestration future"
            ));
            assert!(turn.cancelled_activities.is_empty() && turn.cancelled_timers.is_empty());
            assert_eq!(
                story.lines()[1..],
                [
                    "2 ActivityScheduled",
                    "3 TimerCreated",
                    "4 SubOrchestrationScheduled",
                    "5 ExternalSubscribed",
                    "6 ActivityCancelRequested <- 2",
                    "7 SubOrchestrationCancelRequested <- 4"
                ]
            );
            assert_eq!(story.turn([raised("end", "")]).outcome, completed(""));
        },
    );
}

/// 5.4: a completion for dropped work is recorded, but not delivered.
#[test]
fn a_late_completion_of_dropped_work_changes_nothing() {
    tell(
        |ctx, _| async move {
            let work = ctx.schedule_activity("a", "");
            let timeout = ctx.schedule_timer(Duration::from_secs(1));
            let first = matches!(ctx.select2(work, timeout).await, Either2::First(_));
            ctx.schedule_wait("end").await;
            Ok(first.to_string())
        },
        |story| {
            story.start();
            story.turn([timer_fired(3)]);
            let turn = story.turn([activity_completed(2, "late")]);
            assert_eq!((turn.delta.len(), &turn.outcome), (1, &Outcome::Running));
            assert_eq!(story.turn([raised("end", "")]).outcome, completed("false"));
        },
    );
}

/// 2.7: each completion of a batch is observed on its own, in order.
#[test]
fn the_earlier_message_of_one_batch_wins_a_select() {
    tell(
        |ctx, _| async move {
            let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
            Ok(ctx.select2(a, b).await.index().to_string())
        },
        |story| {
            story.start();
            let turn = story.turn([activity_completed(3, ""), activity_completed(2, "")]);
            assert_eq!(turn.outcome, completed("1"));
        },
    );
}

/// A mapped future still stands for its work.
#[test]
fn dropping_a_mapped_future_cancels_its_activity() {
    tell(
        |ctx, _| async move {
            let mapped = ctx.schedule_activity("a", "").map(|result| result.is_ok());
            ctx.schedule_wait("drop").await;
            drop(mapped);
            ctx.schedule_wait("end").await;
            Ok(String::new())
        },
        |story| {
            story.start();
            assert_eq!(story.turn([raised("drop", "")]).cancelled_activities, [2]);
        },
    );
}

/// 5.5: futures that the code still holds when it returns are dropped before the terminal event.
#[test]
fn futures_held_at_the_end_are_dropped() {
    tell(
        |ctx, _| async move {
            let _activity = ctx.schedule_activity("a", "");
            let _wait = ctx.schedule_wait("w");
            let _queue = ctx.dequeue_event("q");
            let _child = ctx.schedule_sub_orchestration("c", "");
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok("done".into())
        },
        |story| {
            story.start();
            let turn = story.turn([timer_fired(6)]);
            assert_eq!(turn.cancelled_activities, [2]);
            assert_eq!(kinds(&turn.messages), ["CancelInstance"]);
            assert_eq!(
                story.lines()[7..],
                [
                    "8 ActivityCancelRequested <- 2",
                    "9 SubOrchestrationCancelRequested <- 5",
                    "10 ExternalSubscribedCancelled <- 3",
                    "11 ExternalSubscribedPersistentCancelled <- 4",
                    "12 OrchestrationCompleted"
                ]
            );
        },
    );
}
