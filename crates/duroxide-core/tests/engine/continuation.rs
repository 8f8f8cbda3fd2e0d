//! Continue-as-new: the state that one execution leaves to the next.

use std::sync::{Arc, Mutex};

use duroxide_core::{
    ErrorDetails, Event, OrchestrationContext, ParentLink, WorkItem,
    engine::{Continuation, Ending, Outcome, Record, Seed, end_without_code},
};

use crate::story::*;

fn continuation(outcome: Outcome) -> Continuation {
    match outcome {
        Outcome::ContinuedAsNew(next) => next,
        other => panic!("expected a continue-as-new, got {other:?}"),
    }
}

/// 8.1, 8.3, 5.5: unread messages and status are carried; futures that the code holds count as open.
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

/// 2.1, 2.12, 8.3: an execution that has only its seed has not run, so its first poll is live; carried messages come
/// first.
#[test]
fn a_stored_seed_starts_like_a_new_execution() {
    let carried = vec![("q".to_owned(), "1".to_owned()), ("q".to_owned(), "2".to_owned())];
    let replayed: Arc<Mutex<Vec<bool>>> = Arc::default();
    let note = Arc::clone(&replayed);
    let code = move |ctx: OrchestrationContext, _| async move {
        let (a, b) = (ctx.dequeue_event("q").await, ctx.dequeue_event("q").await);
        ctx.schedule_wait("end").await;
        Ok(format!("{a}{b}{:?}", ctx.get_custom_status()))
    };
    let run = |stored: bool, mode| -> Vec<Event> {
        let (code, note) = (code, Arc::clone(&note));
        let noting = move |ctx: OrchestrationContext, input| {
            // Called by the first poll.
            note.lock().unwrap().push(ctx.is_replaying());
            code(ctx, input)
        };
        let mut story = Story::new(noting, mode);
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
    assert_eq!(*replayed.lock().unwrap(), [false]);
    for (stored, mode) in [(true, Mode::Live), (false, Mode::Replayed), (true, Mode::Replayed)] {
        replayed.lock().unwrap().clear();
        assert_eq!(json(&run(stored, mode)), expected);
        let polls: &[bool] = if mode == Mode::Live { &[false] } else { &[false, true] };
        assert_eq!(*replayed.lock().unwrap(), polls, "live once, whoever stored the seed");
    }
}

/// 2.1, 2.4, 8.4: a stored seed that no wake-up reached begins with the first message of any kind, which is processed too.
#[test]
fn a_stored_seed_begins_with_any_message() {
    let code = |ctx: OrchestrationContext, _| async move {
        let first = ctx.dequeue_event("q").await;
        let second = ctx.dequeue_event("q").await;
        Ok(format!("{first} {second}"))
    };
    let stored = |mode| {
        let mut story = Story::new(code, mode);
        story.seed.execution_id = 2;
        story.seed.carried = vec![("q".to_owned(), "carried".to_owned())];
        story.history = story.seed.clone().into_events(Default::default());
        story
    };
    for mode in [Mode::Live, Mode::Replayed] {
        // A completion of the execution before is dropped; the code runs all the same.
        let mut story = stored(mode);
        assert_eq!(story.turn([activity_completed(2, "late")]).outcome, Outcome::Running);
        assert_eq!(story.lines()[2..], ["3 ExternalSubscribedPersistent", "4 ExternalSubscribedPersistent"]);
        assert_eq!(story.turn([queued("q", "new")]).outcome, completed("carried new"));
        let mut story = stored(mode);
        assert_eq!(story.turn([queued("q", "new")]).outcome, completed("carried new"));
        assert_eq!(story.lines()[2..4], ["3 ExternalEventPersistent", "4 ExternalSubscribedPersistent"]);
        let mut story = stored(mode);
        assert_eq!(failure(&story.turn([cancel("x")])), "canceled: x");
        assert_eq!(story.lines()[2], "3 OrchestrationCancelRequested");
    }
}

/// 6.4: a link of older data does not say which execution made the call, and stays so; half a link is none.
#[test]
fn a_parent_link_without_execution_is_kept_as_it_is() {
    let link = ParentLink { instance: "p".into(), event_id: 4, execution_id: None };
    tell(
        |ctx, _| async move {
            ctx.schedule_wait("go").await;
            ctx.continue_as_new("next").await
        },
        |story| {
            story.seed.parent = Some(link.clone());
            assert_eq!(story.start().parent, Some(link.clone()));
            let turn = story.turn([raised("go", "")]);
            assert_eq!(turn.parent, Some(link.clone()));
            let ending = Ending::Failed(ErrorDetails::orchestration_failed("x"));
            let record = Record::Stored(story.history[..2].to_vec());
            assert_eq!(end_without_code(record, ending, Default::default()).parent, Some(link.clone()));
            assert!(!json(&story.history)[0].contains("parent_execution_id"));
        },
    );
    let start = |parent_instance: Option<&str>, parent_id| WorkItem::StartOrchestration {
        instance: INSTANCE.into(),
        orchestration: "Order".into(),
        input: String::new(),
        version: None,
        parent_instance: parent_instance.map(str::to_owned),
        parent_id,
        parent_execution_id: None,
        execution_id: 1,
    };
    let parent_of = |item| Seed::from_item(item, 1, "1.0.0".into()).unwrap().parent;
    assert_eq!(parent_of(start(Some("p"), Some(4))), Some(link));
    assert_eq!((parent_of(start(Some("p"), None)), parent_of(start(None, Some(4)))), (None, None));
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
