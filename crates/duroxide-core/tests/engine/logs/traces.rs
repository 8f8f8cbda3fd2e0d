//! Traces come out once, however often the code is replayed (2.12).

use std::sync::{Arc, Mutex};

use duroxide_core::OrchestrationContext;

use crate::story::*;

/// Polls of an earlier turn are replayed ones; all others are live.
#[test]
fn replayed_polls_say_so() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let code = move |ctx: OrchestrationContext, _: String| {
        let log = Arc::clone(&log);
        async move {
            let note = |step: &'static str| {
                if ctx.is_logging_enabled() {
                    log.lock().unwrap().push(step);
                }
            };
            note("start");
            ctx.schedule_activity("a", "").await?;
            note("after a");
            ctx.schedule_activity("b", "").await?;
            note("after b");
            Ok(String::new())
        }
    };
    let mut story = Story::new(code, Mode::Replayed);
    story.start();
    story.turn([activity_completed(2, "")]);
    story.turn([activity_completed(4, "")]);
    assert_eq!(*seen.lock().unwrap(), ["start", "after a", "after b"]);
}
