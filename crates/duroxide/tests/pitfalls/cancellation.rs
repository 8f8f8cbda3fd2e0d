//! Work whose future was dropped.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, ended, node, output, until};

async fn race(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let activity = ctx.schedule_activity("Obedient", input);
    let timer = ctx.schedule_timer(Duration::from_millis(200));
    ctx.select2(activity, timer).await;
    Ok("raced".to_owned())
}

/// B18, 7.3, 5.3: with default options the token fires within 500 ms of the round that dropped the activity.
#[tokio::test]
async fn an_activity_that_lost_its_race_is_asked_to_stop_within_half_a_second() {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    let stopped: Arc<Mutex<Option<Instant>>> = Arc::default();
    let begun: Arc<Mutex<Option<Instant>>> = Arc::default();
    let (notes_begin, notes_stop) = (Arc::clone(&begun), Arc::clone(&stopped));
    let obedient = move |ctx: ActivityContext, input: String| {
        let (begun, stopped) = (Arc::clone(&notes_begin), Arc::clone(&notes_stop));
        async move {
            *begun.lock().unwrap() = Some(Instant::now());
            ctx.cancelled().await;
            *stopped.lock().unwrap() = Some(Instant::now());
            Ok(input)
        }
    };
    let activities = ActivityRegistry::builder().register("Obedient", obedient).build();
    let orchestrations = OrchestrationRegistry::builder().register("Race", race).build();
    let runtime = node(&store, activities, orchestrations, RuntimeOptions::default()).await;
    // On a busy machine an activity may begin after its race; such a race shows nothing and is run again.
    for n in 0.. {
        let instance = format!("race-{n}");
        client.start_orchestration(&instance, "Race", "").await.unwrap();
        assert_eq!(output(ended(&client, &instance).await), "raced");
        let committed = Instant::now();
        if begun.lock().unwrap().is_some() {
            until("the token fires", async || stopped.lock().unwrap().is_some()).await;
            let late = stopped.lock().unwrap().unwrap().saturating_duration_since(committed);
            assert!(late <= Duration::from_millis(500), "{late:?}");
            break;
        }
    }
    runtime.shutdown(None).await;
}
