//! The log lines of the engine: once, when the event happens, and not again when it is replayed.

mod traces;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use duroxide_core::{BackoffStrategy, OrchestrationContext, RetryPolicy, WorkItem};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::story::*;

/// Keeps the level, the message and the open waits of every log line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(Level, Message)>>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        self.0.lock().unwrap().push((*event.metadata().level(), message));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Clone, Default)]
struct Message {
    text: String,
    awaited: String,
    failed: String,
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.text = format!("{value:?}"),
            name if name.starts_with("awaited") => self.awaited += &format!("{name}={value:?} "),
            name @ ("activity_id" | "reason") => self.failed += &format!("{name}={value:?} "),
            _ => {}
        }
    }
}

/// The warnings of a story.
fn warnings(script: impl FnOnce()) -> Vec<String> {
    whole_warnings(script).into_iter().map(|message| message.text).collect()
}

fn whole_warnings(script: impl FnOnce()) -> Vec<Message> {
    lines_of(Level::WARN, script)
}

fn lines_of(wanted: Level, script: impl FnOnce()) -> Vec<Message> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), script);
    let lines = lines.0.lock().unwrap();
    lines.iter().filter(|(level, _)| *level == wanted).map(|(_, text)| text.clone()).collect()
}

/// 2.4: the log distinguishes the reasons why completions are dropped.
#[test]
fn a_dropped_completion_is_reported_with_its_reason() {
    let from = |execution_id| WorkItem::ActivityCompleted {
        instance: INSTANCE.into(),
        execution_id,
        id: 2,
        result: String::new(),
    };
    for mode in [Mode::Live, Mode::Replayed] {
        let found = warnings(|| {
            let mut story = Story::new(
                |ctx, _| async move {
                    ctx.schedule_activity("a", "").await?;
                    Ok(ctx.schedule_wait("end").await)
                },
                mode,
            );
            story.seed.execution_id = 5;
            story.start();
            story.turn([from(4), from(6), from(5), from(5)]);
            story.turn([from(5)]);
        });
        assert_eq!(
            found,
            [
                "ignoring completion from previous execution",
                "completion from different execution",
                "ignoring duplicate completion",
                "ignoring duplicate completion",
            ]
        );
    }
}

/// 9.1: an event without an open wait is logged when it arrives, and by no replay.
#[test]
fn an_unawaited_event_is_logged_once() {
    for mode in [Mode::Live, Mode::Replayed] {
        let found = warnings(|| {
            let mut story = Story::new(|ctx, _| async move { Ok(ctx.schedule_wait("end").await) }, mode);
            story.start();
            story.turn([raised("early", "")]);
            story.turn([raised("other", "")]);
            story.turn([raised("end", "")]);
        });
        let text = |name: &str| {
            format!("skipping ExternalEvent delivery: no pending subscription slot for event '{name}'")
        };
        assert_eq!(found, [text("early"), text("other")], "{mode:?}");
    }
}

/// 9.1: the log line of a misspelt name has the names of the open waits and queues.
#[test]
fn an_unawaited_event_names_the_open_waits() {
    let found = whole_warnings(|| {
        let code = |ctx: OrchestrationContext, _| async move {
            ctx.join3(ctx.schedule_wait("paid"), ctx.schedule_wait("sent"), ctx.dequeue_event("inbox")).await;
            Ok(String::new())
        };
        let mut story = Story::new(code, Mode::Live);
        story.start();
        story.turn([raised("payed", "")]);
        story.turn([raised("paid", "")]);
        story.turn([raised("paid", "")]);
    });
    let awaited: Vec<_> = found.iter().map(|message| message.awaited.trim_end()).collect();
    let expected = [
        r#"awaited_events=["paid", "sent"] awaited_queues=["inbox"]"#,
        r#"awaited_events=["sent"] awaited_queues=["inbox"]"#,
    ];
    assert_eq!(awaited, expected);
}

/// 10.1: a message to a queue that the code has never read is kept, and logged once, with the open waits. Neither a
/// replay, nor further messages, nor the next execution report it again.
#[test]
fn a_message_to_an_unread_queue_names_the_open_waits() {
    let code = |ctx: OrchestrationContext, _| async move {
        let first = ctx.dequeue_event("orders").await;
        ctx.schedule_wait("paid").await;
        let second = ctx.dequeue_event("ordres").await;
        ctx.continue_as_new(first + &second).await
    };
    for mode in [Mode::Live, Mode::Replayed] {
        let found = whole_warnings(|| {
            let mut story = Story::new(code, mode);
            story.seed.carried = vec![("carried".to_owned(), "0".to_owned())];
            story.turn([queued("orders", "1")]);
            story.turn([queued("orders", "2"), queued("ordres", "3")]);
            story.turn([queued("ordres", "4"), queued("carried", "5")]);
            story.turn([raised("paid", "")]);
        });
        let found: Vec<_> =
            found.iter().map(|message| (message.text.as_str(), message.awaited.trim_end())).collect();
        let expected = (
            "nothing has read queue 'ordres' yet: its messages wait",
            r#"awaited_events=["paid"] awaited_queues=[]"#,
        );
        assert_eq!(found, [expected], "{mode:?}");
    }
}

/// 7.5: a retry is logged with the attempt that failed, once.
#[test]
fn a_retry_names_the_schedule_that_failed() {
    for mode in [Mode::Live, Mode::Replayed] {
        let found = lines_of(Level::INFO, || {
            let code = |ctx: OrchestrationContext, _| async move {
                let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::None);
                ctx.schedule_wait("go").await;
                ctx.schedule_activity_with_retry("A", "", policy).await
            };
            let mut story = Story::new(code, mode);
            story.start();
            story.turn([raised("go", "")]);
            story.turn([activity_failed(4, "busy")]);
            story.turn([activity_failed(6, "closed")]);
            story.turn([activity_completed(8, "done")]);
        });
        let failed: Vec<_> = found.iter().map(|message| message.failed.trim_end()).collect();
        assert_eq!(
            failed,
            [r#"activity_id=4 reason="busy""#, r#"activity_id=6 reason="closed""#],
            "{mode:?}"
        );
    }
}
