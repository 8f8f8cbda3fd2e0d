//! The bytes that an execution counts as held, live and replayed: all its large values.

use crate::story::*;

const LARGE: usize = 100_000;
/// Names, ids and open calls.
const SMALL: usize = 4 << 10;

fn large() -> String {
    "x".repeat(LARGE)
}

#[track_caller]
fn assert_holds(story: &Story, larges: usize, what: &str) {
    let held = story.held_bytes();
    let expected = larges * LARGE..larges * LARGE + SMALL;
    assert!(expected.contains(&held), "{what}: {held} of {expected:?}");
}

#[test]
fn input_results_and_messages_count_until_they_are_given_up() {
    tell(
        |ctx, _| async move {
            ctx.schedule_activity("a", "").await?;
            let never_read = ctx.schedule_activity("b", "");
            ctx.schedule_wait("go").await;
            drop(never_read);
            ctx.schedule_wait("again").await;
            ctx.dequeue_event("q").await;
            ctx.schedule_wait("end").await;
            Ok(String::new())
        },
        |story| {
            story.seed.input = large();
            story.start();
            assert_holds(story, 1, "the input");
            story.turn([activity_completed(2, &large())]);
            assert_holds(story, 2, "a result that the code got");
            story.turn([activity_completed(4, &large())]);
            assert_holds(story, 3, "a result that the code has not looked at");
            story.turn([raised("go", "")]);
            assert_holds(story, 2, "the code dropped the call with its result");
            story.turn([queued("q", &large())]);
            assert_holds(story, 3, "a message that nobody has read");
            story.turn([raised("again", &large())]);
            assert_holds(story, 4, "the message was read, and an event arrived");
        },
    );
}

#[test]
fn carried_messages_count_before_and_after_the_first_turn() {
    tell(
        |ctx, _| async move { Ok(ctx.schedule_wait("go").await) },
        |story| {
            story.seed.carried = vec![("q".into(), large()), ("q".into(), large())];
            assert_holds(story, 2, "before the first turn");
            story.start();
            assert_holds(story, 2, "after it");
        },
    );
}

#[test]
fn key_values_and_the_custom_status_count_as_they_are_now() {
    const VALUE: usize = 60_000;
    tell(
        |ctx, _| async move {
            ctx.set_kv_value("a", "x".repeat(VALUE));
            ctx.set_custom_status("x".repeat(VALUE));
            ctx.schedule_wait("go").await;
            ctx.clear_kv_value("a");
            ctx.reset_custom_status();
            Ok(ctx.schedule_wait("end").await)
        },
        |story| {
            story.start();
            let held = story.held_bytes();
            assert!((2 * VALUE..2 * VALUE + SMALL).contains(&held), "{held}");
            story.turn([raised("go", "")]);
            assert!(story.held_bytes() < SMALL);
        },
    );
}
