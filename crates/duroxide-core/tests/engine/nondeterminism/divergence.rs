//! 4.1, 4.5: where code first differs from a history, and which call that is.

use std::time::Duration;

use duroxide_core::{OrchestrationContext, engine::Divergence};

use crate::story::*;

async fn charge_and_ship(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    let receipt = ctx.schedule_activity("Charge", order).await?;
    ctx.set_custom_status("charged");
    ctx.schedule_timer(Duration::from_secs(60)).await;
    ctx.schedule_activity("Ship", receipt).await
}

/// A story of `charge_and_ship` that waits for its last activity.
fn shipping() -> Story {
    let mut story = Story::new(charge_and_ship, Mode::Live);
    story.start();
    story.turn([activity_completed(2, "receipt")]);
    story.turn([timer_fired(5)]);
    story
}

fn shipped() -> Story {
    let mut story = shipping();
    story.turn([activity_completed(7, "parcel")]);
    story
}

/// What replay says of this code, after `story`.
fn found<F, Fut>(mut story: Story, code: F) -> Divergence
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    story.deploy(code);
    *story.check_replay().unwrap_err()
}

#[test]
fn the_same_code_has_no_difference() {
    assert_eq!(shipping().check_replay(), Ok(()));
    assert_eq!(shipped().check_replay(), Ok(()));
}

#[test]
fn another_call_is_shown_with_its_line() {
    let line = line!() + 2;
    let difference =
        found(shipping(), |ctx, order| async move { ctx.schedule_activity("Reserve", order).await });
    assert_eq!(difference.event_id, 2);
    assert!(difference.recorded.starts_with("ActivityScheduled { name: \"Charge\""), "{difference}");
    assert!(difference.found.starts_with("asked for ActivityScheduled"), "{difference}");
    assert!(difference.found.contains("Reserve"), "{difference}");
    let location = difference.location.unwrap();
    assert!(location.file().ends_with("divergence.rs"), "{location}");
    assert_eq!(location.line(), line);
    assert!(difference.to_string().ends_with(&location.to_string()));
}

/// The line is that of the user's call, whichever kind of call it is.
#[test]
fn every_kind_of_call_knows_its_line() {
    type Call = fn(&OrchestrationContext);
    let calls: [(u32, Call); 12] = [
        (line!(), |ctx| drop(ctx.schedule_activity_on_session("X", "", "s"))),
        (line!(), |ctx| drop(ctx.schedule_timer(Duration::ZERO))),
        (line!(), |ctx| drop(ctx.schedule_wait("x"))),
        (line!(), |ctx| drop(ctx.dequeue_event_typed::<String>("x"))),
        (line!(), |ctx| drop(ctx.schedule_sub_orchestration("X", ""))),
        (line!(), |ctx| ctx.schedule_orchestration("X", "x", "")),
        (line!(), |ctx| ctx.set_custom_status("x")),
        (line!(), |ctx| ctx.set_kv_value_typed("x", &1)),
        (line!(), |ctx| ctx.clear_all_kv_values()),
        (line!(), |ctx| drop(ctx.utc_now())),
        (line!(), |ctx| drop(ctx.event::<String>("x"))),
        (line!(), |ctx| drop(ctx.continue_as_new("x"))),
    ];
    for (line, call) in calls {
        let difference = found(shipping(), move |ctx, _| {
            call(&ctx);
            std::future::pending()
        });
        assert_eq!(difference.location.unwrap().line(), line, "{difference}");
    }
}

/// A call that is made when it is polled has the line of the user's code too, and so have its later attempts.
#[test]
fn retried_calls_know_their_line() {
    let line = line!() + 2;
    let difference = found(shipping(), |ctx, order| async move {
        ctx.schedule_activity_with_retry("Reserve", order, duroxide_core::RetryPolicy::new(3)).await
    });
    assert_eq!(difference.location.unwrap().line(), line, "{difference}");
}

#[test]
fn an_early_return_is_shown_with_its_value() {
    let difference = found(shipping(), |ctx, order| async move {
        ctx.schedule_activity("Charge", order).await?;
        Ok("early".into())
    });
    assert_eq!(difference.event_id, 4);
    assert!(difference.recorded.starts_with("CustomStatusUpdated"), "{difference}");
    assert_eq!((difference.found.as_str(), difference.location), ("returned Ok(\"early\")", None));
}

#[test]
fn code_that_waits_for_something_else_is_shown() {
    let difference = found(shipping(), |ctx, order| async move {
        ctx.schedule_activity("Charge", order).await?;
        std::future::pending().await
    });
    assert_eq!((difference.event_id, difference.found.as_str()), (4, "waits and makes no further call"));
}

#[test]
fn code_that_panics_is_shown_with_its_message() {
    let difference = found(shipping(), |ctx, order| async move {
        ctx.schedule_activity("Charge", order).await?;
        panic!("no receipt book")
    });
    assert_eq!(difference.event_id, 4);
    assert!(difference.found.starts_with("panicked: ") && difference.found.contains("no receipt book"));
}

#[test]
fn code_that_panics_at_the_last_event_of_an_open_history_is_found() {
    let mut story = Story::new(charge_and_ship, Mode::Live);
    story.start();
    story.deploy(|ctx, order| async move {
        drop(ctx.schedule_activity("Charge", order));
        panic!("no receipt book")
    });
    assert!(story.check_replay().unwrap_err().found.contains("no receipt book"));
}

#[test]
fn another_output_of_an_ended_history_is_found() {
    let difference = found(shipped(), |ctx, order| async move {
        charge_and_ship(ctx, order).await.map(|parcel| format!("parcel {parcel}"))
    });
    assert_eq!((difference.event_id, difference.found.as_str()), (9, "returned Ok(\"parcel parcel\")"));
    assert_eq!(difference.recorded, "OrchestrationCompleted { output: \"parcel\" }");
}

#[test]
fn one_more_call_before_the_end_of_an_ended_history_is_found() {
    let line = line!() + 3;
    let difference = found(shipped(), |ctx, order| async move {
        charge_and_ship(ctx.clone(), order).await?;
        ctx.schedule_activity("Thank", "").await
    });
    assert_eq!((difference.event_id, difference.location.unwrap().line()), (9, line));
}

/// A call that the code would make next is no difference: it becomes the next event.
#[test]
fn one_more_call_after_the_last_event_of_an_open_history_is_none() {
    let mut story = shipping();
    story.deploy(|ctx, order| async move {
        let _thanks = ctx.schedule_wait("thanks");
        charge_and_ship(ctx, order).await
    });
    assert!(story.check_replay().is_err(), "a wait beside the first call comes too early");
    story.deploy(|ctx, order| async move {
        let receipt = ctx.schedule_activity("Charge", order).await?;
        ctx.set_custom_status("charged");
        ctx.schedule_timer(Duration::from_secs(60)).await;
        let (ship, thank) = (ctx.schedule_activity("Ship", receipt), ctx.schedule_activity("Thank", ""));
        ctx.join2(ship, thank).await.0
    });
    assert_eq!(story.check_replay(), Ok(()));
}

#[test]
fn failed_continued_and_cancelled_histories_are_compared_with_their_end() {
    let mut failed = Story::new(|_, _| async { Err("no".to_owned()) }, Mode::Live);
    failed.start();
    assert_eq!(failed.check_replay(), Ok(()));
    assert_eq!(found(failed, |_, _| async { Err("yes".into()) }).found, "returned Err(\"yes\")");

    let again = |input: &'static str| {
        move |ctx: OrchestrationContext, _| async move { ctx.continue_as_new(input).await }
    };
    let mut continued = Story::new(again("2"), Mode::Live);
    continued.start();
    assert_eq!(continued.check_replay(), Ok(()));
    assert!(found(continued, again("3")).found.contains("ContinueAsNew"));

    let mut cancelled = shipping();
    cancelled.turn([cancel("changed my mind")]);
    assert_eq!(cancelled.check_replay(), Ok(()));
}

/// Calls of the poll in which the code returned are recorded too, and so are the futures that it dropped.
#[test]
fn calls_in_the_last_turn_are_compared() {
    let mut story = Story::new(
        |ctx: OrchestrationContext, _| async move {
            let _unfinished = ctx.schedule_activity("Audit", "");
            ctx.set_custom_status("done");
            Ok("x".to_owned())
        },
        Mode::Live,
    );
    story.start();
    assert_eq!(story.check_replay(), Ok(()));
    let difference = found(story, |ctx: OrchestrationContext, _| async move {
        let _unfinished = ctx.schedule_activity("Audit", "");
        Ok("x".to_owned())
    });
    assert_eq!((difference.event_id, difference.found.as_str()), (3, "returned Ok(\"x\")"));
}
