//! Sagas: which steps are undone, when, and in which order.

use duroxide_core::{
    BackoffStrategy, ErrorDetails, OrchestrationContext, RetryPolicy, WorkItem,
    engine::{Outcome, Turn},
    typed::{Activity, CallError, SagaError},
};

use crate::story::{
    activity_completed, activity_failed, activity_failed_with, cancel, completed, failure, kinds, tell,
    timer_fired,
};

macro_rules! activities {
    ($($name:ident)*) => { $(
        #[allow(non_camel_case_types)]
        enum $name {}
        impl Activity for $name {
            const NAME: &'static str = stringify!($name);
            type Input = String;
            type Output = String;
            type Error = String;
        }
    )* };
}
activities!(reserve release charge refund book unbook);

type Ran = Result<String, SagaError<CallError<String>>>;

fn text(ran: Ran) -> Result<String, String> {
    ran.map_err(String::from)
}

/// Three steps, of which the last one cannot be undone.
async fn order(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let ran = ctx.saga(|saga| async move {
        saga.step::<reserve>("r".into()).undo_with::<release>("r".into()).await?;
        saga.step::<charge>("c".into()).undo_with::<refund>("c".into()).await?;
        saga.step::<book>("b".into()).await
    });
    text(ran.await)
}

/// The activities that a turn handed out, with their ids.
fn called(turn: &Turn) -> Vec<(u64, &str)> {
    let calls = turn.activities.iter().map(|item| {
        let WorkItem::ActivityExecute { id, name, .. } = item else { panic!("{item:?}") };
        (*id, name.as_str())
    });
    calls.collect()
}

fn json(text: &str) -> String {
    format!("\"{text}\"")
}

#[test]
fn a_saga_that_succeeds_undoes_nothing() {
    tell(order, |story| {
        assert_eq!(called(&story.start()), [(3, "reserve")]);
        assert_eq!(called(&story.turn([activity_completed(3, &json("1"))])), [(5, "charge")]);
        assert_eq!(called(&story.turn([activity_completed(5, &json("2"))])), [(7, "book")]);
        assert_eq!(story.turn([activity_completed(7, &json("booked"))]).outcome, completed("booked"));
    });
}

/// The last step first, one after the other. The step that failed has nothing to undo.
#[test]
fn a_saga_that_fails_is_undone_in_reverse() {
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        story.turn([activity_completed(5, &json("2"))]);
        let turn = story.turn([activity_failed(7, &json("sold out"))]);
        assert_eq!(called(&turn), [(9, "refund")]);
        assert_eq!(called(&story.turn([activity_completed(9, &json(""))])), [(11, "release")]);
        assert_eq!(failure(&story.turn([activity_completed(11, &json(""))])), "sold out");
    });
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        let turn = story.turn([activity_failed(5, &json("no such card"))]);
        assert_eq!(called(&turn), [(7, "release")], "the charge returned an error of its own");
    });
}

/// A step that panicked or was lost may have done its work.
#[test]
fn a_step_with_an_unknown_end_is_undone() {
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        let turn = story.turn([activity_failed(5, "activity panicked: at the card reader")]);
        assert_eq!(called(&turn), [(7, "refund")]);
    });
}

/// A cancellation waits until the step that runs has ended, and then undoes it if it may have run.
#[test]
fn a_cancelled_saga_waits_for_the_step_that_runs() {
    let stopped = ErrorDetails::activity_stopped;
    let ends = [
        (activity_completed(5, &json("charged")), "refund"),
        (activity_failed_with(5, stopped()), "refund"),
        (activity_failed_with(5, ErrorDetails::activity_never_started()), "release"),
        (activity_failed(5, &json("no such card")), "release"),
    ];
    for (end, first_undo) in ends {
        tell(order, move |story| {
            story.start();
            story.turn([activity_completed(3, &json("1"))]);
            let told = story.turn([cancel("changed plans")]);
            assert_eq!((kinds(&told.activities), told.stopped_activities.clone()), (vec![], vec![5]));
            assert_eq!(told.cancelled_activities, [0; 0], "the step is awaited, not given up");
            let mut turn = story.turn([end.clone()]);
            assert_eq!(called(&turn)[0].1, first_undo);
            while turn.outcome == Outcome::Running {
                turn = story.turn([activity_completed(called(&turn)[0].0, &json(""))]);
            }
            assert_eq!(failure(&turn), "canceled: changed plans");
        });
    }
}

/// A second request to cancel ends the instance, with its undos.
#[test]
fn a_second_request_ends_the_undos() {
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        story.turn([cancel("first"), activity_completed(5, &json(""))]);
        let turn = story.turn([cancel("second")]);
        assert_eq!(failure(&turn), "canceled: second");
    });
}

/// A first request that comes while a failed saga is undone does not end it.
#[test]
fn a_request_during_the_undos_does_not_end_them() {
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        story.turn([activity_failed(5, &json("no such card"))]);
        assert_eq!(story.turn([cancel("late")]).outcome, Outcome::Running);
        assert_eq!(failure(&story.turn([activity_completed(7, &json(""))])), "no such card");
    });
}

/// An undo is retried, and one that fails for good does not keep the others from running.
#[test]
fn undos_are_retried_and_reported_if_they_fail() {
    let code = |ctx: OrchestrationContext, _| async move {
        let twice = RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
        let ran = ctx.saga(|saga| async move {
            saga.step::<reserve>("r".into()).undo_with::<release>("r".into()).await?;
            let charge = saga.step::<charge>("c".into()).undo_with::<refund>("c".into());
            charge.retry_undo(twice).await?;
            Err::<String, _>(CallError::Untyped("no".into()))
        });
        text(ran.await)
    };
    tell(code, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        assert_eq!(called(&story.turn([activity_completed(5, &json("2"))])), [(7, "refund")]);
        assert_eq!(called(&story.turn([activity_failed(7, &json("closed"))])), [(9, "refund")]);
        let turn = story.turn([activity_failed(9, &json("still closed"))]);
        assert_eq!(called(&turn), [(11, "release")]);
        assert_eq!(
            failure(&story.turn([activity_completed(11, &json(""))])),
            "no; not undone by refund: \"still closed\""
        );
    });
    // Without a policy of its own an undo is retried after a delay.
    tell(order, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        story.turn([activity_failed(5, &json("no such card"))]);
        assert_eq!(kinds(&story.turn([activity_failed(7, &json("closed"))]).messages), ["TimerFired"]);
        assert_eq!(called(&story.turn([timer_fired(9)])), [(11, "release")]);
    });
}

/// Steps side by side are all asked to stop, all awaited, and undone in reverse.
#[test]
fn steps_side_by_side_are_stopped_together() {
    let code = |ctx: OrchestrationContext, _| async move {
        let all = ctx.clone();
        let ran = ctx.saga(|saga| async move {
            let charge = saga.step::<charge>("c".into()).undo_with::<refund>("c".into()).start();
            let book = saga.step::<book>("b".into()).undo_with::<unbook>("b".into()).start();
            for result in all.join(vec![charge, book]).await {
                result?;
            }
            Ok(String::new())
        });
        text(ran.await)
    };
    tell(code, |story| {
        assert_eq!(called(&story.start()), [(3, "charge"), (4, "book")]);
        let told = story.turn([cancel("x")]);
        assert_eq!(told.stopped_activities, [3, 4]);
        assert_eq!(called(&story.turn([activity_completed(4, &json(""))])), [], "the charge still runs");
        let turn = story.turn([activity_failed_with(3, ErrorDetails::activity_stopped())]);
        assert_eq!(called(&turn), [(10, "unbook")]);
        assert_eq!(called(&story.turn([activity_completed(10, &json(""))])), [(12, "refund")]);
    });
}

/// A saga inside a saga is part of it: whether it has succeeded, or is being undone, the outer one undoes the rest.
#[test]
fn an_inner_saga_is_part_of_the_outer_one() {
    let code = |ctx: OrchestrationContext, _| async move {
        let inside = ctx.clone();
        let ran = ctx.saga(|outer| async move {
            outer.step::<reserve>("r".into()).undo_with::<release>("r".into()).await?;
            let inner: Ran =
                inside
                    .saga(|saga| async move {
                        saga.step::<charge>("c".into()).undo_with::<refund>("c".into()).await
                    })
                    .await;
            let charged = inner.map_err(|error| CallError::Untyped(error.to_string()))?;
            outer.step::<book>(charged).await
        });
        text(ran.await)
    };
    // The inner one has succeeded, and the outer one fails after it.
    tell(code, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        story.turn([activity_completed(6, &json("2"))]);
        let failed = story.history.len() as u64;
        let turn = story.turn([activity_failed(failed - 1, &json("sold out"))]);
        assert_eq!(called(&turn)[0].1, "refund");
        let next = called(&turn)[0].0;
        assert_eq!(called(&story.turn([activity_completed(next, &json(""))]))[0].1, "release");
    });
    // Both get the request at once while the inner step runs.
    tell(code, |story| {
        story.start();
        story.turn([activity_completed(3, &json("1"))]);
        assert_eq!(story.turn([cancel("x")]).stopped_activities, [6]);
        let turn = story.turn([activity_completed(6, &json("2"))]);
        assert_eq!(called(&turn)[0].1, "refund");
        let turn = story.turn([activity_completed(called(&turn)[0].0, &json(""))]);
        assert_eq!(called(&turn)[0].1, "release");
        assert_eq!(failure(&story.turn([activity_completed(called(&turn)[0].0, &json(""))])), "canceled: x");
    });
}
