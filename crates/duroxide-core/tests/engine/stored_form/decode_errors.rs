//! Data that does not decode: the error has its type, its origin and its size, never its content.

use duroxide_core::{OrchestrationContext, engine::Outcome};

use crate::story::*;

/// The secret that must not appear in any error.
const SECRET: &str = r#""4111 1111""#;

#[track_caller]
fn assert_names_its_place(outcome: &Outcome, place: &str) {
    let Outcome::Failed { details } = outcome else { panic!("expected a failure, got {outcome:?}") };
    let text = details.display_message();
    assert_eq!(details.category(), "application");
    assert!(text.starts_with(place), "{text}");
    assert!(
        text.contains("(instance 'order', orchestration 'Order' 1.0.0) does not decode as u32:"),
        "{text}"
    );
    assert!(text.contains("at line 1 column 11") && text.ends_with("(11 bytes)"), "{text}");
    assert!(!text.contains("4111") && !text.contains("panicked"), "{text}");
}

/// A typed event or message has no error to return: the orchestration fails with it, and nothing panics.
#[test]
fn an_event_that_does_not_decode_fails_the_orchestration() {
    tell(
        |ctx, _| async move { Ok(ctx.schedule_wait_typed::<u32>("count").await.to_string()) },
        |story| {
            story.start();
            assert_names_its_place(&story.turn([raised("count", SECRET)]).outcome, "data of event 'count' ");
            assert_eq!(story.lines()[2..], ["3 ExternalEvent", "4 OrchestrationFailed"]);
        },
    );
    tell(
        |ctx, _| async move { Ok(ctx.dequeue_event_typed::<u32>("counts").await.to_string()) },
        |story| {
            story.start();
            let turn = story.turn([queued("counts", SECRET)]);
            assert_names_its_place(&turn.outcome, "message of queue 'counts' ");
        },
    );
}

/// Calls that the code made before it met the event are kept, as if it had returned the error (2.8, 5.5).
#[test]
fn calls_before_the_undecodable_event_are_kept() {
    tell(
        |ctx, _| async move {
            let _held = ctx.schedule_activity("a", "");
            ctx.schedule_wait("go").await;
            ctx.schedule_orchestration("Audit", "audit-1", "");
            ctx.schedule_wait_typed::<u32>("count").await;
            Ok(String::new())
        },
        |story| {
            story.start();
            let turn = story.turn([raised("go", "")]);
            assert_eq!(kinds(&turn.messages), ["StartOrchestration"]);
            let turn = story.turn([raised("count", "x")]);
            assert!(failure(&turn).contains("does not decode"), "{}", failure(&turn));
            assert_eq!(turn.cancelled_activities, [2]);
        },
    );
}

/// 2.8: changed code that cannot read a recorded event says so, instead of having ended too early.
#[test]
fn a_recorded_event_that_changed_code_cannot_read_is_named() {
    let mut story = Story::new(
        |ctx: OrchestrationContext, _| async move {
            ctx.schedule_wait_typed::<String>("count").await;
            Ok(ctx.schedule_wait("end").await)
        },
        Mode::Live,
    );
    story.start();
    story.turn([raised("count", SECRET)]);
    story.deploy(|ctx, _| async move {
        ctx.schedule_wait_typed::<u32>("count").await;
        Ok(ctx.schedule_wait("end").await)
    });
    assert_names_its_place(&story.turn([raised("end", "")]).outcome, "data of event 'count' ");
}

/// The output of an activity or a child that does not decode is an error that the code can handle.
#[test]
fn an_output_that_does_not_decode_is_an_error_of_the_call() {
    tell(
        |ctx, _| async move { Ok(ctx.schedule_activity_typed::<_, u32>("Sum", &1).await?.to_string()) },
        |story| {
            story.start();
            let turn = story.turn([activity_completed(2, SECRET)]);
            assert_names_its_place(&turn.outcome, "output of activity 'Sum' ");
        },
    );
    tell(
        |ctx, _| async move { Ok(ctx.schedule_sub_orchestration_typed::<_, u32>("Sum", &1).await?.to_string()) },
        |story| {
            story.start();
            let turn = story.turn([child_completed(2, SECRET)]);
            assert_names_its_place(&turn.outcome, "output of sub-orchestration 'Sum' ");
        },
    );
    tell(
        |ctx, _| async move {
            let policy = duroxide_core::RetryPolicy::new(1);
            Ok(ctx.schedule_activity_with_retry_typed::<_, u32>("Sum", &1, policy).await?.to_string())
        },
        |story| {
            story.start();
            let turn = story.turn([activity_completed(2, SECRET)]);
            assert_names_its_place(&turn.outcome, "output of activity 'Sum' ");
        },
    );
}

/// A value of the key-value store.
#[test]
fn a_value_that_does_not_decode_names_its_key() {
    tell(
        |ctx, _| async move {
            ctx.set_kv_value("count", "x");
            Ok(ctx.get_kv_value_typed::<u32>("count").unwrap_err())
        },
        |story| {
            let expected = "KV deserialization error for key 'count': expected value at line 1 column 1 \
                            (instance 'order', 1 bytes)";
            assert_eq!(story.start().outcome, completed(expected));
        },
    );
}
