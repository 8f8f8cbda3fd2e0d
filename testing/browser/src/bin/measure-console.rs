//! `cargo xtask measure-console`: how fast the console answers on a large store beside a load, and what it costs the load.
//!
//! Prints the p50 and p99 of 50 requests each for the list, an instance of 10,000 events and the overview, and the load's
//! throughput without and with somebody who keeps asking. `--instances 1000000` is the size that the documents speak of.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use browser::served::{OPERATOR, Shop, TIMEOUT};
use duroxide::Client;

/// Requests for each page.
const REQUESTS: usize = 50;
/// How many instances of the load are under way at the same time.
const IN_FLIGHT: usize = 16;
/// What is promised, at p99.
const PROMISED: Duration = Duration::from_millis(100);
/// What the console may cost the load, in percent.
const PROMISED_COST: f64 = 5.0;

fn main() -> ExitCode {
    let option = |name: &str| {
        std::env::args().skip_while(|arg| arg != name).nth(1).and_then(|value| value.parse().ok())
    };
    let (instances, seconds) =
        (option("--instances").unwrap_or(1_000_000), option("--seconds").unwrap_or(20));
    let tokio = tokio::runtime::Runtime::new().expect("a runtime");
    if tokio.block_on(measure(instances, Duration::from_secs(seconds.into()))) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Whether everything is within what is promised.
async fn measure(instances: u32, window: Duration) -> bool {
    println!("a store with {instances} instances and one of 10,000 events");
    let shop = Shop::open(instances).await;
    shop.client.start_orchestration("long", "Long", "").await.expect("starts");
    shop.client.wait_for_orchestration("long", TIMEOUT * 10).await.expect("ends");
    let load = Load::start(&shop.client);
    // Also warms everything up.
    load.rate(window / 4).await;
    let pages = ["/instances", "/instance?id=long", "/overview"];
    let mut are_kept = true;
    for page in pages {
        let mut times = Vec::new();
        for _ in 0..REQUESTS {
            times.push(ask(&shop.url(page)).await);
        }
        times.sort_unstable();
        let (p50, p99) = (times[REQUESTS / 2], times[REQUESTS * 99 / 100]);
        println!("{page}: p50 {p50:.1?}, p99 {p99:.1?} of {REQUESTS} requests beside the load");
        are_kept &= p99 < PROMISED;
    }
    let cost = cost(&shop, &load, window).await;
    load.stop().await;
    Arc::clone(&shop.runtime).shutdown(None).await;
    are_kept && cost < PROMISED_COST
}

/// What a reader who opens a page each second, and keeps a live one open, costs the load. Windows with and without take turns,
/// because a machine's speed changes.
async fn cost(shop: &Shop, load: &Load, window: Duration) -> f64 {
    let (mut without, mut with) = (0.0, 0.0);
    for _ in 0..3 {
        without += load.rate(window).await;
        let reader =
            tokio::spawn(read(["/overview", "/instances", "/instance?id=long"].map(|page| shop.url(page))));
        with += load.rate(window).await;
        reader.abort();
    }
    let cost = (without - with) / without * 100.0;
    println!(
        "load: {:.0} instances/s without, {:.0} with the console in use: {cost:.1} %",
        without / 3.0,
        with / 3.0
    );
    cost
}

async fn read(urls: [String; 3]) {
    loop {
        for url in &urls {
            ask(url).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn ask(url: &str) -> Duration {
    let url = url.to_owned();
    let request = move || {
        let begin = Instant::now();
        let mut answer =
            ureq::get(&url).header("authorization", format!("Bearer {OPERATOR}")).call().expect("an answer");
        let text = answer.body_mut().read_to_string().expect("a page");
        assert!(text.contains("All times are UTC."));
        begin.elapsed()
    };
    tokio::task::spawn_blocking(request).await.expect("a request")
}

/// Instances that start one after the other, several at the same time.
struct Load {
    done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn start(client: &Client) -> Self {
        let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let task = |slot| {
            let (client, done, stop) = (client.clone(), Arc::clone(&done), Arc::clone(&stop));
            tokio::spawn(async move {
                for n in 0_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = format!("load-{slot}-{n}");
                    client.start_orchestration(&id, "Hello", "x").await.expect("starts");
                    client.wait_for_orchestration(&id, TIMEOUT).await.expect("ends");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let tasks = (0..IN_FLIGHT).map(task).collect();
        Self { done, stop, tasks }
    }

    /// Instances per second over a time.
    async fn rate(&self, window: Duration) -> f64 {
        let (before, begin) = (self.done.load(Ordering::Relaxed), Instant::now());
        tokio::time::sleep(window).await;
        (self.done.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64()
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("the load ends");
        }
    }
}
