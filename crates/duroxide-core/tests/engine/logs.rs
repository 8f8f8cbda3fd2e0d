//! What the engine logs: once, when it happens, and not again when it is replayed.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use duroxide_core::WorkItem;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::story::*;

/// Keeps the level and the message of every log line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(Level, String)>>>);

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
        self.0.lock().unwrap().push((*event.metadata().level(), message.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// The warnings of a story.
fn warnings(script: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), script);
    let lines = lines.0.lock().unwrap();
    lines.iter().filter(|(level, _)| *level == Level::WARN).map(|(_, text)| text.clone()).collect()
}

/// 2.4: completions that are dropped are told apart.
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

/// 9.1: an event that nobody waits for is reported when it arrives, and by no replay.
#[test]
fn an_event_for_nobody_is_reported_once() {
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
