//! Code that subscribes to requests to cancel its instance.

use std::{future::pending, time::Duration};

use duroxide_core::{
    AppErrorKind, Either2, ErrorDetails, OrchestrationContext,
    engine::{Outcome, Turn, cancels},
};

use crate::story::{
    Mode, Story, activity_completed, cancel, completed, failure, kinds, lines, raised, tell, timer_fired,
};

/// Waits for payment, and gives the goods back if it is cancelled meanwhile.
async fn order(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let cancelled = ctx.cancel_requested();
    ctx.schedule_activity("Reserve", "").await?;
    match ctx.select2(ctx.schedule_wait("paid"), cancelled).await {
        Either2::First(_) => Ok("sold".to_owned()),
        Either2::Second(reason) => {
            ctx.schedule_activity("Release", "").await?;
            Ok(format!("released: {reason}"))
        }
    }
}

fn assert_cancelled(turn: &Turn, reason: &str) {
    let Outcome::Failed { details: ErrorDetails::Application { kind, .. } } = &turn.outcome else {
        panic!("{:?}", turn.outcome)
    };
    assert_eq!(*kind, AppErrorKind::Cancelled { reason: reason.into() });
}

/// 6.1: code that has subscribed gets the request, cleans up, and ends with a result of its own.
#[test]
fn a_subscription_gets_the_request_and_the_code_cleans_up() {
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, "")]);
        let turn = story.turn([cancel("too expensive")]);
        assert_eq!(turn.outcome, Outcome::Running);
        assert_eq!(kinds(&turn.activities), ["ActivityExecute"]);
        assert_eq!(
            lines(&turn.delta),
            ["6 OrchestrationCancelRequested", "7 ActivityScheduled", "8 ExternalSubscribedCancelled <- 5"]
        );
        assert_eq!(story.turn([activity_completed(7, "")]).outcome, completed("released: too expensive"));
        assert_eq!(
            story.lines()[..3],
            ["1 OrchestrationStarted", "2 CancellationSubscribed", "3 ActivityScheduled"]
        );
    });
}

/// A subscription is open from its call on, also if its future was not polled yet.
#[test]
fn an_unpolled_subscription_gets_the_request() {
    tell(order, |story| {
        story.start();
        assert_eq!(story.turn([cancel("early")]).outcome, Outcome::Running);
        let turn = story.turn([activity_completed(3, "")]);
        // The wait for the payment is made and given up in one turn.
        assert_eq!(
            lines(&turn.delta),
            [
                "5 ActivityCompleted <- 3",
                "6 ExternalSubscribed",
                "7 ActivityScheduled",
                "8 ExternalSubscribedCancelled <- 6"
            ]
        );
    });
}

/// 6.2: a second request ends the instance, with its open calls.
#[test]
fn a_second_request_ends_the_instance() {
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, ""), cancel("first")]);
        let turn = story.turn([cancel("second")]);
        assert_cancelled(&turn, "second");
        assert_eq!(turn.cancelled_activities, [7]);
        assert_eq!(lines(&turn.delta).last().unwrap(), "11 OrchestrationFailed");
    });
    tell(order, |story| {
        story.start();
        assert_cancelled(&story.turn([cancel("first"), cancel("second")]), "second");
    });
}

/// 6.1: without the subscription a request ends the instance, and so it does after the subscription was dropped.
#[test]
fn code_without_a_subscription_is_ended() {
    let drops = |ctx: OrchestrationContext, _| async move {
        drop(ctx.cancel_requested());
        Ok(ctx.schedule_wait("w").await)
    };
    tell(drops, |story| {
        story.start();
        assert_cancelled(&story.turn([cancel("enough")]), "enough");
    });
    // The subscription is dropped in the very turn that brings the request, before the request is applied.
    tell(
        |ctx: OrchestrationContext, _| async move {
            ctx.select2(ctx.schedule_wait("w"), ctx.cancel_requested()).await;
            Ok(ctx.schedule_wait("w").await)
        },
        |story| {
            story.start();
            assert_cancelled(&story.turn([raised("w", ""), cancel("enough")]), "enough");
        },
    );
}

/// The other way around in one batch: the request comes first, and is delivered to the code.
#[test]
fn the_order_of_the_batch_decides() {
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, "")]);
        let turn = story.turn([cancel("first"), raised("paid", "")]);
        assert_eq!(turn.outcome, Outcome::Running);
        assert_eq!(story.turn([activity_completed(8, "")]).outcome, completed("released: first"));
    });
}

#[test]
fn every_subscription_gets_the_request_and_later_ones_at_once() {
    let code = |ctx: OrchestrationContext, _| async move {
        let (first, second) = (ctx.cancel_requested(), ctx.cancel_requested());
        let reasons = ctx.join(vec![first, second]).await;
        let later = ctx.cancel_requested().await;
        Ok([reasons.concat(), later].concat())
    };
    tell(code, |story| {
        story.start();
        assert_eq!(story.turn([cancel("x")]).outcome, completed("xxx"));
        assert_eq!(story.history.len(), 5, "the later subscription is not recorded: {:?}", story.lines());
    });
}

async fn rest(ctx: OrchestrationContext, how: String) -> Result<String, String> {
    let child = ctx.schedule_sub_orchestration("c", "");
    ctx.cancel_requested().await;
    match how.as_str() {
        "ends" => ctx.end_as_cancelled().await,
        "continues" => ctx.continue_as_new("next").await,
        "waits" => {
            drop(child);
            pending().await
        }
        _ => Err("refund failed".to_owned()),
    }
}

/// Code that got a request ends as cancelled if it says so, if it continues as new, or if it waits for nothing.
#[test]
fn code_with_a_request_can_end_as_cancelled() {
    for how in ["ends", "continues", "waits"] {
        tell(rest, |story| {
            story.seed.input = how.into();
            story.start();
            let turn = story.turn([cancel("enough")]);
            assert_cancelled(&turn, "enough");
            assert_eq!(kinds(&turn.messages), ["CancelInstance"], "{how}: the child is cancelled too");
        });
    }
    tell(rest, |story| {
        story.start();
        assert_eq!(failure(&story.turn([cancel("enough")])), "refund failed");
    });
}

#[test]
fn only_code_with_a_request_can_end_as_cancelled() {
    let code = |ctx: OrchestrationContext, _| async move { ctx.end_as_cancelled().await };
    tell(code, |story| assert!(failure(&story.start()).contains("that cancel_requested() has returned")));
}

/// An event is never taken for a request, also under the reserved name.
#[test]
fn an_event_with_the_reserved_name_is_no_request() {
    let code = |ctx: OrchestrationContext, _| async move { Ok(ctx.cancel_requested().await) };
    tell(code, |story| {
        story.start();
        assert_eq!(story.turn([raised("duroxide::cancellation", "x")]).outcome, Outcome::Running);
        assert_eq!(story.turn([cancel("y")]).outcome, completed("y"));
    });
}

/// An orchestration that only waits to be cancelled waits for a call of its own.
#[test]
fn waiting_to_be_cancelled_is_no_foreign_wait() {
    let code = |ctx: OrchestrationContext, _| async move { Ok(ctx.cancel_requested().await) };
    tell(code, |story| assert_eq!(story.start().outcome, Outcome::Running));
}

/// 4.1, 4.5: a replay compares the subscription like every other call.
#[test]
fn code_that_no_longer_asks_does_not_match() {
    let asks = |ctx: OrchestrationContext, _| async move {
        let cancelled = ctx.cancel_requested();
        ctx.select2(ctx.schedule_timer(Duration::from_secs(1)), cancelled).await;
        Ok(String::new())
    };
    let mut story = Story::new(asks, Mode::Replayed);
    story.start();
    story.deploy(|ctx: OrchestrationContext, _| async move {
        ctx.schedule_timer(Duration::from_secs(1)).await;
        Ok(String::new())
    });
    let text = failure(&story.turn([timer_fired(3)]));
    assert!(text.contains("schedule mismatch: action=CreateTimer"), "{text}");
    assert!(text.contains("vs event=CancellationSubscribed (event 2)"), "{text}");
}

/// 6.1, 6.2: a node without the code of the instance sees in the history whether a request ends it.
#[test]
fn a_history_tells_which_request_ends_its_instance() {
    let mut story = Story::new(order, Mode::Live);
    story.start();
    assert_eq!(cancels(&story.history, []), None);
    assert_eq!(cancels(&story.history, ["first"]), None, "the code asked to be told");
    assert_eq!(cancels(&story.history, ["first", "second"]), Some("second"));
    story.turn([cancel("first")]);
    assert_eq!(cancels(&story.history, []), None, "the code was told");
    assert_eq!(cancels(&story.history, ["second"]), Some("second"));
}

/// 6.1: a subscription that was dropped has no effect.
#[test]
fn a_history_shows_that_the_subscription_was_dropped() {
    let drops = |ctx: OrchestrationContext, _| async move {
        ctx.select2(ctx.schedule_wait("w"), ctx.cancel_requested()).await;
        Ok(ctx.schedule_wait("w").await)
    };
    let mut story = Story::new(drops, Mode::Live);
    story.start();
    assert_eq!(cancels(&story.history, ["first"]), None);
    story.turn([raised("w", "")]);
    assert_eq!(cancels(&story.history, ["first"]), Some("first"));
}
