//! Key-value store and custom status as the code sees them.

use std::time::{Duration, UNIX_EPOCH};

use duroxide_core::KvEntry;

use crate::story::*;

/// 11.1: changes take effect at the call and are recorded in order.
#[test]
fn reads_see_the_changes_of_the_same_turn() {
    tell(
        |ctx, _| async move {
            ctx.set_kv_value("b", "2");
            ctx.set_kv_value("a", "1");
            ctx.clear_kv_value("b");
            let keys = ctx.get_kv_all_keys();
            ctx.clear_all_kv_values();
            ctx.set_kv_value_typed("n", &7);
            Ok(format!("{keys:?} {:?} {}", ctx.get_kv_value_typed::<u8>("n"), ctx.get_kv_length()))
        },
        |story| {
            assert_eq!(story.start().outcome, completed("[\"a\"] Ok(Some(7)) 1"));
            assert_eq!(
                story.lines()[1..],
                [
                    "2 KeyValueSet",
                    "3 KeyValueSet",
                    "4 KeyValueCleared",
                    "5 KeyValuesCleared",
                    "6 KeyValueSet",
                    "7 OrchestrationCompleted"
                ]
            );
        },
    );
}

/// 11.3, B9: pruning by age compares recorded times, so it replays the same at any later time.
#[test]
fn pruning_by_age_replays_the_same() {
    tell(
        |ctx, _| async move {
            ctx.set_kv_value("a", "1");
            ctx.schedule_timer(Duration::from_millis(50)).await;
            let now = ctx.utc_now().await?.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
            ctx.set_kv_value("b", "2");
            let pruned = ctx.prune_kv_values_updated_before(now);
            for _ in 0..2 {
                ctx.schedule_timer(Duration::from_secs(1)).await;
            }
            Ok(format!("{pruned} {:?}", ctx.get_kv_all_keys()))
        },
        |story| {
            story.clock.advance_ms(1_000);
            story.start();
            story.clock.advance_ms(50);
            story.turn([timer_fired(3)]);
            story.turn([activity_completed(5, "1050")]);
            story.clock.advance_ms(100_000);
            story.turn([timer_fired(9)]);
            assert_eq!(story.turn([timer_fired(11)]).outcome, completed("1 [\"b\"]"));
            assert_eq!(story.lines().iter().filter(|line| line.contains("KeyValueCleared")).count(), 1);
        },
    );
}

/// 11.2: the state that earlier executions left is there.
#[test]
fn keys_of_earlier_executions_are_there() {
    tell(
        |ctx, _| async move { Ok(ctx.get_kv_value("old").unwrap_or_default()) },
        |story| {
            story.kv.insert("old".into(), KvEntry { value: "kept".into(), last_updated_at_ms: 3 });
            assert_eq!(story.start().outcome, completed("kept"));
        },
    );
}

/// 12.1: each set or reset is an event.
#[test]
fn custom_status_is_set_and_reset() {
    tell(
        |ctx, _| async move {
            ctx.set_custom_status("one");
            let seen = ctx.get_custom_status();
            ctx.reset_custom_status();
            Ok(format!("{seen:?} {:?}", ctx.get_custom_status()))
        },
        |story| {
            assert_eq!(story.start().outcome, completed("Some(\"one\") None"));
            assert_eq!(story.lines()[1..3], ["2 CustomStatusUpdated", "3 CustomStatusUpdated"]);
        },
    );
}
