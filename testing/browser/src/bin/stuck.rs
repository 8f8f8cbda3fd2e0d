//! `cargo run --package browser --bin stuck -- FOLDER`: instances that do not move, each for another reason, with a node and a
//! console, to look at as a new user would.
//!
//! Makes the store `FOLDER/stuck.db` and a picture of each instance's page, light, dark and as on a phone, and runs until it is
//! stopped, so that the command line can look at the same store.

#![allow(clippy::expect_used)]

use std::{path::PathBuf, sync::Arc, time::Duration};

use browser::driver::Driver;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RetryPolicy, RuntimeOptions,
    providers::{Provider as _, TagFilter, sqlite::SqliteProvider},
    runtime::{Runtime, UnregisteredBackoffConfig, registry::ActivityRegistry},
};
use duroxide_ui::{Auth, Console};

/// Longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The instances, with their orchestration and input.
const STUCK: [(&str, &str, &str); 10] = [
    ("misspelt", "Approve", ""),
    ("timer", "Timer", ""),
    ("runs", "Call", "Sleep"),
    ("retries", "Retry", ""),
    ("parent", "Parent", ""),
    ("inbox", "Inbox", ""),
    ("tagged", "Gpu", ""),
    ("no-activity", "Call", "Misspelt"),
    ("session-1", "Session", ""),
    ("session-2", "Session", ""),
];

/// What is looked at beside the pages of instances.
const PAGES: [&str; 4] = ["overview", "instances", "failures", "nodes"];

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    let tokio = tokio::runtime::Runtime::new().expect("a runtime");
    let (client, runtime) = tokio.block_on(story(&folder.join("stuck.db")));
    let console = Console::new(client, Auth::trust_this_network()).router();
    let listener = tokio.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    tokio.spawn(async move { axum::serve(listener, console).await });
    println!("{url}\nsqlite:{}", folder.join("stuck.db").display());
    take_pictures(&url, &folder);
    tokio.block_on(async {
        tokio::signal::ctrl_c().await.expect("a signal");
        runtime.shutdown(Some(0)).await;
    });
}

fn take_pictures(url: &str, folder: &std::path::Path) {
    let Some(driver) = Driver::start() else { return };
    let more = ["unknown", "versioned", "poisoned", "dead-letter", "cancelled"];
    let ids = STUCK.iter().map(|(id, ..)| *id).chain(more);
    let pages: Vec<(String, String)> = PAGES
        .iter()
        .map(|page| ((*page).to_owned(), format!("{url}/{page}")))
        .chain(ids.map(|id| (format!("instance-{id}"), format!("{url}/instance?id={id}"))))
        .collect();
    for (kind, width, height, dark) in
        [("light", 1_180, 900, false), ("dark", 1_180, 900, true), ("phone", 400, 860, false)]
    {
        let window = driver.open(width, height, dark);
        for (name, url) in &pages {
            window.go(url);
            window.screenshot(&folder.join(format!("{name}-{kind}.png")));
        }
    }
    println!("pictures are in {}", folder.display());
}

async fn story(path: &std::path::Path) -> (Client, Arc<Runtime>) {
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await;
    let store = Arc::new(store.expect("the store opens"));
    let client = Client::new(store.clone());
    let hasty = node(&store, 1, Duration::from_millis(1)).await;
    client.start_orchestration("poisoned", "Poisonous", "").await.expect("starts");
    client.wait_for_orchestration("poisoned", TIMEOUT).await.expect("ends");
    hasty.shutdown(None).await;
    let runtime = node(&store, 10, Duration::from_secs(600)).await;
    for (id, name, input) in STUCK {
        client.start_orchestration(id, name, input).await.expect("starts");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.start_orchestration("unknown", "Oder", "").await.expect("starts");
    client.start_orchestration_versioned("versioned", "Approve", "2.0.0", "").await.expect("starts");
    client.start_orchestration("cancelled", "Stubborn", "").await.expect("starts");
    client.start_orchestration("dead-letter", "Card", "").await.expect("starts");
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.raise_event("misspelt", "approval", "yes").await.expect("raises");
    client.enqueue_event("inbox", "Mail", "hello").await.expect("enqueues");
    client.cancel_instance("cancelled", "no longer wanted").await.expect("cancels");
    let card = TagFilter::Tags(["card".to_owned()].into());
    let fetched = store.fetch_work_item(Duration::from_secs(30), Duration::ZERO, None, &card).await;
    let (_, token, _) = fetched.expect("fetches").expect("the activity is queued");
    store.dead_letter_work_item(&token, "the card reader is gone").await.expect("becomes a dead letter");
    tokio::time::sleep(Duration::from_secs(1)).await;
    (client, runtime)
}

async fn node(store: &Arc<SqliteProvider>, max_attempts: u32, delay: Duration) -> Arc<Runtime> {
    let options = RuntimeOptions {
        max_attempts,
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: delay, max_delay: delay },
        ..Default::default()
    };
    Runtime::start_with_options(store.clone(), activities(), orchestrations(), options).await
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Sleep", |ctx: ActivityContext, _: String| async move {
            ctx.cancelled().await;
            Ok(String::new())
        })
        .register("Refuse", |_: ActivityContext, _: String| async move {
            Err::<String, _>("the bank did not answer".to_owned())
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    type Ctx = OrchestrationContext;
    OrchestrationRegistry::builder()
        .register("Approve", |ctx: Ctx, _: String| async move { Ok(ctx.schedule_wait("Approval").await) })
        .register("Timer", |ctx: Ctx, _: String| async move {
            ctx.schedule_timer(Duration::from_secs(3 * 3_600)).await;
            Ok(String::new())
        })
        .register("Call", |ctx: Ctx, name: String| async move { ctx.schedule_activity(name, "42").await })
        .register("Retry", |ctx: Ctx, _: String| async move {
            let pause = duroxide::BackoffStrategy::Fixed { delay: Duration::from_secs(900) };
            ctx.schedule_activity_with_retry("Refuse", "42", RetryPolicy::new(5).with_backoff(pause)).await
        })
        .register("Gpu", |ctx: Ctx, _: String| async move {
            ctx.schedule_activity("Sleep", "42").with_tag("gpu").await
        })
        .register("Card", |ctx: Ctx, _: String| async move {
            ctx.schedule_activity("Sleep", "42").with_tag("card").await
        })
        .register("Parent", |ctx: Ctx, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Approve", "the-child", "").await
        })
        .register("Inbox", |ctx: Ctx, _: String| async move { Ok(ctx.dequeue_event("mail").await) })
        .register("Session", |ctx: Ctx, _: String| async move {
            ctx.schedule_activity_on_session("Sleep", "42", "cart-7").await
        })
        .register("Stubborn", |ctx: Ctx, _: String| async move {
            ctx.cancel_requested().await;
            Ok(ctx.schedule_wait("Goodbye").await)
        })
        .build()
}
