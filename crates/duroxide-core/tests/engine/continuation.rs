//! Continue-as-new: what one execution leaves to the next.

use duroxide_core::{
    Event,
    engine::{Continuation, Outcome},
};

use crate::story::*;

fn continuation(outcome: Outcome) -> Continuation {
    match outcome {
        Outcome::ContinuedAsNew(next) => next,
        other => panic!("expected a continue-as-new, got {other:?}"),
    }
}

/// 8.1, 8.3, 5.5: unread messages and status are carried, what is held counts as open.
#[test]
fn unread_messages_and_status_are_carried() {
    tell(
        |ctx, _| async move {
            ctx.set_custom_status("working");
            let _held = ctx.schedule_activity("a", "");
            ctx.dequeue_event("q").await;
            ctx.continue_as_new_versioned("2.0.0", "next").await
        },
        |story| {
            story.start();
            let messages = [("q", "1"), ("b", "2"), ("q", "3")];
            let turn = story.turn(messages.map(|(name, data)| queued(name, data)));
            assert_eq!(
                continuation(turn.outcome),
                Continuation {
                    input: "next".into(),
                    version: Some("2.0.0".into()),
                    carried: vec![("b".into(), "2".into()), ("q".into(), "3".into())],
                    custom_status: Some("working".into()),
                }
            );
            assert_eq!(turn.cancelled_activities, [3]);
            assert_eq!(
                story.lines()[7..],
                ["8 ActivityCancelRequested <- 3", "9 OrchestrationContinuedAsNew"]
            );
        },
    );
}

/// 2.1, 8.3: an execution that has only its seed has not run; carried messages come first.
#[test]
fn a_stored_seed_starts_like_a_new_execution() {
    let carried = vec![("q".to_owned(), "1".to_owned()), ("q".to_owned(), "2".to_owned())];
    let code = |ctx: duroxide_core::OrchestrationContext, _| async move {
        assert!(!ctx.is_replaying() || ctx.get_custom_status().is_some());
        let (a, b) = (ctx.dequeue_event("q").await, ctx.dequeue_event("q").await);
        ctx.schedule_wait("end").await;
        Ok(format!("{a}{b}{:?}", ctx.get_custom_status()))
    };
    let run = |stored: bool, mode| -> Vec<Event> {
        let mut story = Story::new(code, mode);
        story.seed.carried = carried.clone();
        story.seed.custom_status = Some("kept".into());
        if stored {
            story.history = story.seed.clone().into_events(Default::default());
        }
        story.start();
        assert_eq!(story.turn([raised("end", "")]).outcome, completed("12Some(\"kept\")"));
        story.history
    };
    let expected = json(&run(false, Mode::Live));
    for (stored, mode) in [(true, Mode::Live), (false, Mode::Replayed), (true, Mode::Replayed)] {
        assert_eq!(json(&run(stored, mode)), expected);
    }
}

/// 2.10: a continue-as-new outranks the output, a cancellation outranks both.
#[test]
fn the_order_of_outcomes() {
    let code = |ctx: duroxide_core::OrchestrationContext, _| async move {
        ctx.schedule_wait("go").await;
        drop(ctx.continue_as_new("first"));
        drop(ctx.continue_as_new("second"));
        Ok("output".into())
    };
    tell(code, |story| {
        story.start();
        let turn = story.turn([raised("go", "")]);
        assert_eq!(continuation(turn.outcome).input, "first");
    });
    tell(code, |story| {
        story.start();
        assert_eq!(failure(&story.turn([raised("go", ""), cancel("c")])), "canceled: c");
    });
}
