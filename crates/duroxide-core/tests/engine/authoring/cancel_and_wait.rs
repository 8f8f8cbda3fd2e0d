//! Asking an activity to stop, and waiting until it has ended.

use duroxide_core::{
    ActivityOutcome, Either2, ErrorDetails, EventKind, OrchestrationContext,
    engine::{Ending, Outcome, Record, end_without_code},
};

use crate::story::*;

/// Stops activity 2 as soon as `stop` is raised, and says how it ended.
async fn stopping(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let charge = ctx.schedule_activity("Charge", "");
    ctx.schedule_wait("stop").await;
    let outcome = ctx.cancel_and_wait(charge).await;
    ctx.schedule_wait("end").await;
    Ok(format!("{outcome:?}"))
}

/// 5.2: the request is a breadcrumb and a request of the round, made once; the schedule stays open.
#[test]
fn a_request_to_stop_is_recorded_and_made_once() {
    tell(stopping, |story| {
        story.start();
        let turn = story.turn([raised("stop", "")]);
        assert_eq!((&turn.stopped_activities[..], &turn.cancelled_activities[..]), (&[2][..], &[][..]));
        assert_eq!(story.lines()[3..], ["4 ExternalEvent", "5 ActivityCancelRequested <- 2"]);
        let reason = "cancel_and_wait".to_owned();
        assert_eq!(story.history[4].kind, EventKind::ActivityCancelRequested { reason });
        let turn = story.turn([raised("other", "")]);
        assert!(turn.stopped_activities.is_empty() && turn.delta.len() == 1, "nothing is asked again");
        let turn = story.turn([activity_completed(2, "receipt")]);
        assert!(turn.stopped_activities.is_empty() && turn.cancelled_activities.is_empty());
        assert_eq!(story.turn([raised("end", "")]).outcome, completed(r#"Completed("receipt")"#));
    });
}

/// 5.2: each end of a stopped activity is its own outcome, whichever texts user code returns.
#[test]
fn the_outcome_says_how_the_activity_ended() {
    let cases = [
        (activity_failed(2, "declined"), r#"Failed("declined")"#),
        (
            activity_failed(2, "canceled: the activity never started"),
            r#"Failed("canceled: the activity never started")"#,
        ),
        (activity_failed_with(2, ErrorDetails::activity_stopped()), "Stopped"),
        (activity_failed_with(2, ErrorDetails::activity_never_started()), "NeverStarted"),
    ];
    for (message, expected) in cases {
        tell(stopping, |story| {
            story.start();
            story.turn([raised("stop", "")]);
            story.turn([message.clone()]);
            assert_eq!(story.turn([raised("end", "")]).outcome, completed(expected));
        });
    }
}

/// 2.4: an activity that ended before it was asked, or in the same batch, is not asked.
#[test]
fn an_activity_that_has_ended_is_not_asked() {
    for messages in [
        [activity_completed(2, "in time"), raised("stop", "")],
        [raised("stop", ""), activity_completed(2, "in time")],
    ] {
        tell(stopping, |story| {
            story.start();
            let turn = story.turn(messages.clone());
            assert!(turn.stopped_activities.is_empty());
            assert!(!story.lines().iter().any(|line| line.contains("CancelRequested")));
            assert_eq!(story.turn([raised("end", "")]).outcome, completed(r#"Completed("in time")"#));
        });
    }
}

/// An activity that is called and stopped at once is handed out with the request: the store decides that no worker began
/// it.
#[test]
fn an_activity_can_be_stopped_in_the_turn_that_calls_it() {
    tell(
        |ctx, _| async move {
            let charge = ctx.schedule_activity("Charge", "");
            Ok(format!("{:?}", ctx.cancel_and_wait(charge).await))
        },
        |story| {
            let turn = story.start();
            assert_eq!(
                (kinds(&turn.activities), turn.stopped_activities),
                (vec!["ActivityExecute"], vec![2])
            );
            let never = activity_failed_with(2, ErrorDetails::activity_never_started());
            assert_eq!(story.turn([never]).outcome, completed("NeverStarted"));
        },
    );
}

/// 5.3: code that does not want to wait any longer gives the activity up as always.
#[test]
fn a_stopped_activity_can_be_given_up() {
    tell(
        |ctx, _| async move {
            let charge = ctx.schedule_activity("Charge", "");
            match ctx.select2(ctx.cancel_and_wait(charge), ctx.schedule_wait("enough")).await {
                Either2::First(outcome) => Ok(format!("{outcome:?}")),
                Either2::Second(_) => Ok(ctx.schedule_wait("end").await),
            }
        },
        |story| {
            story.start();
            let turn = story.turn([raised("enough", "")]);
            assert_eq!((&turn.cancelled_activities[..], &turn.stopped_activities[..]), (&[2][..], &[][..]));
            assert!(
                story.lines().contains(&"7 ActivityCancelRequested <- 2".to_owned()),
                "{:?}",
                story.lines()
            );
            assert_eq!(story.turn([raised("end", "x")]).outcome, completed("x"));
        },
    );
}

/// 5.3: asked and given up in one turn is given up.
#[test]
fn an_activity_that_is_given_up_in_the_same_turn_is_not_asked() {
    tell(
        |ctx, _| async move {
            let charge = ctx.schedule_activity("Charge", "");
            ctx.schedule_wait("stop").await;
            let ready = std::future::ready(());
            ctx.select2(ctx.cancel_and_wait(charge), ready).await;
            Ok(ctx.schedule_wait("end").await)
        },
        |story| {
            story.start();
            let turn = story.turn([raised("stop", "")]);
            assert_eq!((&turn.cancelled_activities[..], &turn.stopped_activities[..]), (&[2][..], &[][..]));
            assert_eq!(story.turn([raised("end", "x")]).outcome, completed("x"));
        },
    );
}

/// 6.2: an execution that ends takes the activity off its queue, asked or not, with code or without.
#[test]
fn the_end_of_the_execution_takes_back_a_stopped_activity() {
    tell(stopping, |story| {
        story.start();
        story.turn([raised("stop", "")]);
        let ending = Ending::Failed(ErrorDetails::orchestration_failed("x"));
        let ended = end_without_code(Record::Stored(story.history.clone()), ending, Default::default());
        assert_eq!(ended.cancelled_activities, [2]);
        let turn = story.turn([cancel("enough")]);
        assert_eq!((&turn.cancelled_activities[..], &turn.stopped_activities[..]), (&[2][..], &[][..]));
        assert_eq!(failure(&turn), "canceled: enough");
    });
}

/// The typed output of a stopped activity is decoded.
#[test]
fn a_typed_activity_has_a_typed_outcome() {
    tell(
        |ctx, _| async move {
            let sum = ctx.schedule_activity_typed::<_, u32>("Sum", &[1, 2]);
            match ctx.cancel_and_wait(sum).await {
                ActivityOutcome::Completed(sum) => Ok((sum + 1).to_string()),
                other => Err(format!("{other:?}")),
            }
        },
        |story| {
            story.start();
            assert_eq!(story.turn([activity_completed(2, "3")]).outcome, completed("4"));
        },
    );
}

/// A child cannot be asked to stop.
#[test]
fn only_activities_can_be_stopped() {
    tell(
        |ctx, _| async move {
            let child = ctx.schedule_sub_orchestration("Child", "");
            Ok(format!("{:?}", ctx.cancel_and_wait(child).await))
        },
        |story| {
            let turn = story.start();
            assert!(matches!(turn.outcome, Outcome::Failed { .. }));
            assert!(failure(&turn).contains("cancel_and_wait() can only be called on activity futures"));
        },
    );
}
