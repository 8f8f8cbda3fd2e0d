//! Machines whose clocks are wrong.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use duroxide::{
    Client, OrchestrationContext, OrchestrationRegistry,
    runtime::{Runtime, registry::ActivityRegistry},
};
use duroxide_core::{Clock, Timestamp};
use duroxide_provider::store::StoreSnapshot;
use duroxide_runtime::env::{BoxFuture, Env, Moment, RealEnv, RunningTurn, Timer, TurnJob};

use crate::{
    fixture::{ended, output, quick_options, until},
    schema::Schema,
};

const HOUR: Duration = Duration::from_secs(3_600);
const DELAY: Duration = Duration::from_millis(700);

/// A machine whose wall clock is an hour ahead or behind.
struct WrongClock {
    env: RealEnv,
    is_ahead: bool,
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        let now = self.env.now();
        if self.is_ahead { now.saturating_add(HOUR) } else { now.saturating_sub(HOUR) }
    }
}

impl Timer for WrongClock {
    fn moment(&self) -> Moment {
        self.env.moment()
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        self.env.sleep_until(deadline)
    }
}

impl Env for WrongClock {
    fn spawn(&self, task: BoxFuture) {
        self.env.spawn(task);
    }

    fn run_turn(&self, job: TurnJob) -> Box<dyn RunningTurn> {
        self.env.run_turn(job)
    }

    fn close_turns(&self) -> BoxFuture {
        self.env.close_turns()
    }

    fn random(&self) -> u128 {
        self.env.random()
    }
}

/// Waits for a timer, writes a value, and returns the current time.
async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_timer(DELAY).await;
    ctx.set_kv_value("done", "yes");
    let now = ctx.utc_now().await?;
    Ok(now.duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?.as_millis().to_string())
}

/// When the value was set.
fn set_at(snapshot: &StoreSnapshot, instance: &str) -> u64 {
    let found = snapshot.instances.iter().find(|found| found.instance == instance).unwrap();
    let entry = found.kv.get("done").or_else(|| found.kv_changes.get("done")?.as_ref());
    entry.unwrap().last_updated_at_ms
}

/// 24.1, I14, 14.1: the database's clock decides when timers fire, and nodes record its time, not that of their machines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_and_recorded_times_are_those_of_the_database() {
    let Some(schema) = Schema::new() else { return };
    let orchestrations = OrchestrationRegistry::builder().register("Waits", waits).build();
    let admin = schema.admin().await;
    for is_ahead in [true, false] {
        let store = schema.open().await;
        let options = quick_options();
        let env = WrongClock { env: RealEnv::new(options.orchestration_concurrency), is_ahead };
        let activities = ActivityRegistry::default();
        let runtime =
            Runtime::start_in(Arc::new(env), Arc::clone(&store), activities, orchestrations.clone(), options)
                .await;
        let client = Client::new(Arc::clone(&store));
        let instance = format!("ahead: {is_ahead}");
        let (began, wall) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
        client.start_orchestration(&instance, "Waits", "").await.unwrap();
        let now: u64 = output(ended(&client, &instance).await).parse().unwrap();
        assert!(began.elapsed() >= DELAY, "{instance}: after {:?}", began.elapsed());

        let is_now = |millis: u64| {
            let off = Duration::from_millis(millis).abs_diff(wall);
            assert!(off < HOUR / 2, "{instance}: {off:?} off");
        };
        is_now(now);
        for event in client.read_execution_history(&instance, 1).await.unwrap() {
            is_now(event.timestamp_ms);
        }
        is_now(set_at(&schema.snapshot(), &instance));
        // A row that no node can take over becomes a dead letter.
        let bad = "INSERT INTO {s}.intake (kind, instance_id, name, version, data) VALUES ('start', 'bad', 'Waits', 'x', '')";
        admin.batch_execute(&bad.replace("{s}", schema.name())).await.unwrap();
        admin.execute("SELECT pg_notify($1, 'intake')", &[&schema.name()]).await.unwrap();
        let letters = async || client.list_dead_letters(None).await.unwrap();
        until("it is a dead letter", async || !letters().await.is_empty()).await;
        let letter = letters().await.remove(0);
        is_now(letter.dead_lettered_at_ms);
        client.discard_dead_letter(&letter.id).await.unwrap();
        runtime.shutdown(None).await;
    }
}
