//! Activities, timers and children: scheduled, handed out, completed, retried.

mod fan_in;

use std::time::Duration;

use crate::story::*;
use duroxide_core::{
    ActivityInput, BackoffStrategy, ErrorDetails, OrchestrationContext, RetryPolicy, RunOptions, WorkItem,
    engine::{Outcome, Turn},
    not_retryable,
    typed::Activity,
};

#[test]
fn an_activity_is_scheduled_once_and_its_result_comes_back() {
    tell(
        |ctx, input| async move { ctx.schedule_activity("Greet", input).await },
        |story| {
            let turn = story.start();
            assert_eq!(kinds(&turn.activities), ["ActivityExecute"]);
            assert_eq!(turn.outcome, Outcome::Running);
            let turn = story.turn([activity_completed(2, "hello")]);
            assert_eq!(turn.outcome, completed("hello"));
            assert!(turn.activities.is_empty(), "S4.20: a completed schedule is never handed out again");
            assert_eq!(
                story.lines(),
                [
                    "1 OrchestrationStarted",
                    "2 ActivityScheduled",
                    "3 ActivityCompleted <- 2",
                    "4 OrchestrationCompleted"
                ]
            );
        },
    );
}

/// 7.2, 2.5: application errors reach the code.
#[test]
fn an_activity_error_reaches_the_code_as_text() {
    tell(
        |ctx, _| async move { ctx.schedule_activity("Pay", "").await.or_else(|e| Ok(format!("caught {e}"))) },
        |story| {
            story.start();
            assert_eq!(story.turn([activity_failed(2, "no money")]).outcome, completed("caught no money"));
        },
    );
}

/// 2.5: a system error fails the orchestration; the code does not see it.
#[test]
fn a_system_error_fails_the_orchestration() {
    let details =
        ErrorDetails::Infrastructure { operation: "x".into(), message: "y".into(), retryable: true };
    tell(
        |ctx, _| async move { ctx.schedule_activity("Pay", "").await.or_else(|e| Ok(format!("caught {e}"))) },
        move |story| {
            story.start();
            let turn = story.turn([activity_failed_with(2, details.clone())]);
            assert_eq!(turn.outcome, Outcome::Failed { details: details.clone() });
            assert_eq!(story.lines()[2..], ["3 ActivityFailed <- 2", "4 OrchestrationFailed"]);
        },
    );
}

/// 2.4.2, S4.12, S4.21, B10: the first completion counts, and later ones do not, in the same batch or another.
#[test]
fn repeated_completions_are_dropped() {
    tell(
        |ctx, _| async move {
            let failed = ctx.schedule_activity("A", "").await.is_err();
            ctx.schedule_timer(Duration::from_secs(1)).await;
            let child = ctx.schedule_sub_orchestration("C", "").await;
            ctx.schedule_wait("go").await;
            Ok(format!("{failed} {child:?}"))
        },
        |story| {
            story.start();
            story.turn([activity_failed(2, "no"), activity_completed(2, "late"), activity_failed(2, "no")]);
            story.turn([activity_completed(2, "later"), timer_fired(4), timer_fired(4)]);
            story.turn([timer_fired(4), child_completed(6, "c"), child_completed(6, "d")]);
            let turn = story.turn([child_completed(6, "e"), activity_failed(2, "no"), raised("go", "")]);
            assert_eq!(turn.outcome, completed("true Ok(\"c\")"));
            let completions = story.lines().iter().filter(|line| line.contains("<-")).count();
            assert_eq!(completions, 3, "{:?}", story.lines());
        },
    );
}

/// 2.4.1: completions of another execution are dropped.
#[test]
fn completions_of_another_execution_are_dropped() {
    tell(
        |ctx, _| async move { ctx.schedule_activity("A", "").await },
        |story| {
            story.start();
            let foreign = WorkItem::ActivityCompleted {
                instance: INSTANCE.into(),
                execution_id: 9,
                id: 2,
                result: "foreign".into(),
            };
            assert_eq!(story.turn([foreign]).delta.len(), 0);
            assert_eq!(story.turn([activity_completed(2, "own")]).outcome, completed("own"));
        },
    );
}

/// 14.1, I14: clock and delay are both rounded up.
#[test]
fn a_timer_is_never_early() {
    tell(
        |ctx, _| async move {
            ctx.schedule_timer(Duration::from_micros(1_500)).await;
            Ok("rang".into())
        },
        |story| {
            story.clock.advance_micros(10_001);
            let turn = story.start();
            assert!(matches!(turn.messages[..], [WorkItem::TimerFired { id: 2, fire_at_ms: 13, .. }]));
            assert_eq!(story.turn([timer_fired(2)]).outcome, completed("rang"));
        },
    );
}

/// 7.5: attempts, a durable timer between them, the last error at the end.
#[test]
fn a_retry_waits_between_attempts_and_returns_the_last_error() {
    let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_secs(1) });
    tell(
        move |ctx, _| {
            let policy = policy.clone();
            async move { ctx.schedule_activity_with_retry("A", "", policy).await }
        },
        |story| {
            story.start();
            story.turn([activity_failed(2, "one")]);
            story.turn([timer_fired(4)]);
            story.turn([activity_failed(6, "two")]);
            story.turn([timer_fired(8)]);
            assert_eq!(failure(&story.turn([activity_failed(10, "three")])), "three");
        },
    );
}

/// 7.5: the activity is scheduled before its timer; a timeout ends the call without retry.
#[test]
fn a_timed_out_attempt_is_not_retried() {
    tell(
        |ctx, _| async move {
            let policy = RetryPolicy::new(3).with_timeout(Duration::from_secs(1));
            ctx.schedule_activity_with_retry("A", "", policy).await
        },
        |story| {
            story.start();
            assert_eq!(story.lines()[1..], ["2 ActivityScheduled", "3 TimerCreated"]);
            let turn = story.turn([timer_fired(3)]);
            assert_eq!(failure(&turn), "timeout: activity timed out");
            assert_eq!(turn.cancelled_activities, [2], "the slow activity is given up");
        },
    );
}

/// 7.5: the bound of an attempt goes to the worker with the work item. The history is the same as without it, so an
/// execution may be replayed by code that has another bound, or none.
#[test]
fn the_bound_of_an_attempt_travels_with_the_work_item_only() {
    let code = |timeout: Option<Duration>| {
        move |ctx: OrchestrationContext, _| async move {
            let policy = RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
            match timeout {
                Some(timeout) => {
                    ctx.schedule_activity_with_retry("A", "x", policy.with_attempt_timeout(timeout)).await
                }
                None => ctx.schedule_activity_with_retry("A", "x", policy).await,
            }
        }
    };
    let given = |turn: &Turn| match &turn.activities[..] {
        [WorkItem::ActivityExecute { input, .. }] => ActivityInput::from_item_input(input.clone()),
        other => panic!("expected one activity, got {other:?}"),
    };
    let second = Duration::from_secs(1);
    tell(code(Some(second)), |story| {
        let expected = ActivityInput {
            input: "x".into(),
            options: RunOptions { attempt_timeout: Some(second), retry_of: None },
        };
        assert_eq!(given(&story.start()), expected);
        assert!(json(&story.history)[1].contains(r#""input":"x""#), "recorded as it was given");
        assert_eq!(given(&story.turn([activity_failed(2, "slow")])), expected, "each attempt has it");
        story.deploy(code(None));
        assert_eq!(story.turn([activity_completed(4, "done")]).outcome, completed("done"));
    });
    tell(code(None), |story| {
        let turn = story.start();
        let json = serde_json::to_string(&turn.activities[0]).unwrap();
        let plain =
            r#"{"ActivityExecute":{"instance":"order","execution_id":1,"id":2,"name":"A","input":"x"}}"#;
        assert_eq!(json, plain, "without a bound the item is what it always was");
    });
}

/// 7.5: an error that says that it is not worth a retry ends the call, attempts left or not.
#[test]
fn an_error_that_is_not_retryable_ends_the_call() {
    tell(
        |ctx, _| async move { ctx.schedule_activity_with_retry("A", "", RetryPolicy::new(5)).await },
        |story| {
            story.start();
            story.turn([activity_failed(2, "busy")]);
            story.turn([timer_fired(4)]);
            let turn = story.turn([activity_failed(6, &not_retryable("declined"))]);
            assert_eq!(failure(&turn), "[not retryable] declined");
        },
    );
}

/// S2.16, S2.11: a retry after such an error is in the records of executions that began before 0.5.0. They keep their rule,
/// in replay and in new turns; executions of this version have the new one.
#[test]
fn an_execution_of_an_older_version_retries_every_error() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity_with_retry("A", "", RetryPolicy::new(3)).await
    };
    for mode in [Mode::Live, Mode::Replayed] {
        let mut story = Story::new(code, mode);
        story.history = story.seed.clone().into_events(Default::default());
        story.history[0].duroxide_version = "0.1.32".to_owned();
        story.turn([]);
        let declined = || activity_failed(2, &not_retryable("declined"));
        assert_eq!(story.turn([declined()]).outcome, Outcome::Running, "{mode:?}");
        story.turn([timer_fired(4)]);
        let turn = story.turn([activity_failed(6, &not_retryable("declined"))]);
        assert_eq!(turn.outcome, Outcome::Running, "{mode:?}");
        story.turn([timer_fired(8)]);
        assert_eq!(story.turn([activity_completed(10, "paid")]).outcome, completed("paid"));

        // The same record under the new rule is that of other code.
        story.history.truncate(9);
        story.history[0].duroxide_version = "0.5.0".to_owned();
        story.deploy(code);
        let turn = story.turn([activity_completed(10, "paid")]);
        assert!(
            failure(&turn).contains("orchestration ended before its recorded history"),
            "{}",
            failure(&turn)
        );
    }
}

/// 6.4: automatic ids carry the parent; the link names the call.
#[test]
fn a_child_gets_an_automatic_id_and_a_link() {
    tell(
        |ctx, _| async move { ctx.schedule_sub_orchestration("Child", "x").await },
        |story| {
            let turn = story.start();
            let expected = WorkItem::StartOrchestration {
                instance: "order::sub::2".into(),
                orchestration: "Child".into(),
                input: "x".into(),
                version: None,
                parent_instance: Some(INSTANCE.into()),
                parent_id: Some(2),
                parent_execution_id: Some(1),
                execution_id: 1,
            };
            assert_eq!(turn.messages, [expected]);
            assert_eq!(story.turn([child_completed(2, "done")]).outcome, completed("done"));
        },
    );
}

#[test]
fn a_reserved_child_id_is_refused_with_nothing_recorded() {
    tell(
        |ctx, _| async move { ctx.schedule_sub_orchestration_with_id("Child", "sub::mine", "").await },
        |story| {
            let turn = story.start();
            assert!(failure(&turn).contains("reserved marker 'sub::'"));
            assert_eq!(story.lines(), ["1 OrchestrationStarted", "2 OrchestrationFailed"]);
        },
    );
}

/// 2.13: a terminal turn hands out only its detached starts.
#[test]
fn a_terminal_turn_hands_out_only_detached_starts() {
    tell(
        |ctx, _| async move {
            let _held = ctx.schedule_activity("Never", "");
            ctx.schedule_orchestration("Other", "other-1", "x");
            Ok("done".into())
        },
        |story| {
            let turn = story.start();
            assert_eq!(kinds(&turn.messages), ["StartOrchestration"]);
            assert!(turn.activities.is_empty());
            assert_eq!(
                story.lines()[1..],
                [
                    "2 ActivityScheduled",
                    "3 OrchestrationChained",
                    "4 ActivityCancelRequested <- 2",
                    "5 OrchestrationCompleted"
                ]
            );
        },
    );
}

/// 2.11
#[test]
fn a_panic_is_a_recorded_failure() {
    tell(
        |ctx, _| async move {
            ctx.schedule_activity("A", "").await?;
            panic!("boom {}", 7)
        },
        |story| {
            story.start();
            let turn = story.turn([activity_completed(2, "")]);
            assert_eq!(failure(&turn), "orchestration panicked: boom 7");
        },
    );
}

enum Charge {}

impl Activity for Charge {
    const NAME: &'static str = "Charge";
    type Input = u8;
    type Output = u8;
    type Error = String;
}

/// The work item of a typed retry says which call it belongs to. The history does not: it is that of a call by name.
#[test]
fn a_typed_retry_names_its_first_attempt_in_the_work_item_only() {
    let code = |ctx: OrchestrationContext, _| async move {
        let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::None);
        let charged = ctx.activity::<Charge>(7).retry(policy).await?;
        Ok(charged.to_string())
    };
    let retry_of = |turn: &Turn| match &turn.activities[..] {
        [WorkItem::ActivityExecute { input, .. }] => {
            ActivityInput::from_item_input(input.clone()).options.retry_of
        }
        other => panic!("expected one activity, got {other:?}"),
    };
    tell(code, |story| {
        assert_eq!(retry_of(&story.start()), None);
        assert_eq!(retry_of(&story.turn([activity_failed(2, "busy")])), Some(2));
        assert_eq!(retry_of(&story.turn([activity_failed(4, "busy")])), Some(2), "not the attempt before");
        assert!(json(&story.history)[3].contains(r#""input":"7""#), "recorded as it was given");
        story.deploy(|ctx: OrchestrationContext, _| async move {
            let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::None);
            ctx.schedule_activity_with_retry("Charge", "7", policy).await
        });
        assert_eq!(story.turn([activity_completed(6, "8")]).outcome, completed("8"));
    });
}
