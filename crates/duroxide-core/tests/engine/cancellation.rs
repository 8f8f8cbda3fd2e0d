//! A cancelled instance ends, and takes its children and its work with it.

use std::time::Duration;

use duroxide_core::{AppErrorKind, ErrorDetails, Event, EventKind, WorkItem, engine::Outcome};

use crate::story::*;

/// 6.1, 6.2, 3.4, 2.4.4: the code runs once more, its result does not count; open work is removed, children are cancelled. Of two
/// cancellations the first is recorded.
#[test]
fn cancelling_ends_the_instance_and_cancels_its_children() {
    tell(
        |ctx, _| async move {
            let activity = ctx.schedule_activity("a", "");
            let child = ctx.schedule_sub_orchestration("c", "");
            let timer = ctx.schedule_timer(Duration::from_secs(1));
            let wait = ctx.schedule_wait("w");
            ctx.schedule_wait("go").await;
            drop((activity, child, timer, wait));
            Ok("the code cannot prevent it".into())
        },
        |story| {
            story.start();
            let turn = story.turn([cancel("enough"), raised("go", ""), cancel("again")]);
            let kind = AppErrorKind::Cancelled { reason: "enough".into() };
            assert!(matches!(
                &turn.outcome,
                Outcome::Failed { details: ErrorDetails::Application { kind: found, .. } } if *found == kind
            ));
            assert_eq!(failure(&turn), "canceled: enough");
            assert_eq!((&turn.cancelled_activities[..], &turn.cancelled_timers[..]), (&[2][..], &[4][..]));
            let told = WorkItem::CancelInstance {
                instance: "order::sub::3".into(),
                reason: "parent canceled".into(),
            };
            assert_eq!(turn.messages, [told]);
            assert_eq!(
                story.lines()[6..],
                [
                    "7 OrchestrationCancelRequested",
                    "8 ExternalEvent",
                    "9 ActivityCancelRequested <- 2",
                    "10 ExternalSubscribedCancelled <- 5",
                    "11 OrchestrationFailed"
                ]
            );
        },
    );
}

/// 3.2, 6.2: code that is parked when it is cancelled drops nothing; its open calls are closed all the same, in order.
#[test]
fn cancelling_parked_code_closes_its_waits_and_reads() {
    tell(
        |ctx, _| async move {
            ctx.join3(ctx.schedule_wait("b"), ctx.dequeue_event("q"), ctx.schedule_wait("a")).await;
            Ok(String::new())
        },
        |story| {
            story.start();
            assert_eq!(failure(&story.turn([cancel("enough")])), "canceled: enough");
            assert_eq!(
                story.lines()[4..],
                [
                    "5 OrchestrationCancelRequested",
                    "6 ExternalSubscribedCancelled <- 2",
                    "7 ExternalSubscribedCancelled <- 4",
                    "8 ExternalSubscribedPersistentCancelled <- 3",
                    "9 OrchestrationFailed"
                ]
            );
        },
    );
}

/// A cancellation that comes with the start still leaves a whole history.
#[test]
fn an_instance_can_be_cancelled_in_its_first_turn() {
    tell(
        |ctx, _| async move { ctx.schedule_activity("a", "").await },
        |story| {
            let turn = story.turn([cancel("x")]);
            assert!(turn.activities.is_empty(), "nothing is handed out");
            assert_eq!(
                story.lines(),
                [
                    "1 OrchestrationStarted",
                    "2 OrchestrationCancelRequested",
                    "3 ActivityScheduled",
                    "4 ActivityCancelRequested <- 3",
                    "5 OrchestrationFailed"
                ]
            );
        },
    );
}

/// 2.5: the failure of a child whose cancellation is recorded is only recorded.
#[test]
fn the_system_error_of_a_given_up_child_is_only_recorded() {
    tell(
        |ctx, _| async move {
            drop(ctx.schedule_sub_orchestration("c", ""));
            Ok(ctx.schedule_wait("go").await)
        },
        |story| {
            story.start();
            let details =
                ErrorDetails::Infrastructure { operation: "o".into(), message: "m".into(), retryable: false };
            assert_eq!(story.turn([child_failed(2, details)]).outcome, Outcome::Running);
            assert_eq!(story.turn([raised("go", "on")]).outcome, completed("on"));
        },
    );
}

/// 2.10, 2.4: a request that was stored without the end of its execution ends it with the next turn, whatever that turn
/// brings. The first reason stands, and the request is not recorded again.
#[test]
fn a_stored_request_without_an_end_is_honoured() {
    for message in [raised("other", ""), cancel("again")] {
        let code = |ctx: duroxide_core::OrchestrationContext, _| async move {
            let child = ctx.schedule_sub_orchestration("c", "");
            let go = ctx.schedule_wait("go").await;
            drop(child);
            Ok(go)
        };
        let mut story = Story::new(code, Mode::Replayed);
        story.start();
        let request = EventKind::OrchestrationCancelRequested { reason: "enough".into() };
        let event_id = story.history.len() as u64 + 1;
        story.history.push(Event::with_event_id(event_id, INSTANCE, 1, None, request));
        let turn = story.turn([message]);
        assert_eq!(failure(&turn), "canceled: enough");
        let told =
            WorkItem::CancelInstance { instance: "order::sub::2".into(), reason: "parent canceled".into() };
        assert_eq!(turn.messages, [told]);
        let requests =
            story.lines().iter().filter(|line| line.contains("OrchestrationCancelRequested")).count();
        assert_eq!(requests, 1, "{:?}", story.lines());
    }
}
