//! `cargo xtask measure-console`: how fast the console answers on a large store beside a load, and what it costs the load.
//!
//! Prints the p50 and p99 of 50 requests each for the list, an instance of 10,000 events, the overview and the failures, and the
//! load's throughput without and with somebody who uses the console, each with its verdict. A bound that is missed is no
//! failure of the program: on a busy machine the figures say nothing. `--instances 1000000` is the size that the documents speak of.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::{
    io::Read as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use browser::served::{OPERATOR, Shop, TIMEOUT};
use duroxide::{Client, SummaryRequest};

/// Requests for each page.
const REQUESTS: usize = 50;
/// How many instances of the load are under way at the same time.
const IN_FLIGHT: usize = 16;
/// What is promised, at p99.
const PROMISED: Duration = Duration::from_millis(100);
/// What the console may cost the load, in percent.
const PROMISED_COST: f64 = 5.0;
/// How long the pages may take to be read in full for the first time.
const WAIT_MAX: Duration = Duration::from_secs(120);

fn main() {
    let option = |name: &str, default: u32| {
        let value = std::env::args().skip_while(|arg| arg != name).nth(1);
        value.and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (instances, seconds, pairs) =
        (option("--instances", 1_000_000), option("--seconds", 8), option("--pairs", 12));
    let tokio = tokio::runtime::Runtime::new().expect("a runtime");
    tokio.block_on(measure(instances, Duration::from_secs(seconds.into()), pairs));
}

async fn measure(instances: u32, window: Duration, pairs: u32) {
    let begin = Instant::now();
    let shop = Shop::open(instances).await;
    shop.client.start_orchestration("long", "Long", "").await.expect("starts");
    shop.client.wait_for_orchestration("long", TIMEOUT * 10).await.expect("ends");
    println!("a store with {instances} instances and one of 10,000 events, made in {:.0?}", begin.elapsed());
    let load = Load::start(&shop.client);
    load.rate(window / 2).await;
    let mut verdicts = Vec::new();
    for (page, filled) in [
        ("/instances", "instance?id="),
        ("/instance?id=long", "Timeline"),
        ("/overview", "By name and version"),
        ("/failures", "failed instances"),
    ] {
        wait_until_filled(&shop.url(page), filled).await;
        verdicts.push(measure_page(&shop, page).await);
    }
    let begin = Instant::now();
    shop.client.summarize_instances(&SummaryRequest::default()).await.expect("counts");
    println!("the counts of the overview take {:.2?}, in the background", begin.elapsed());
    verdicts.push(measure_cost(&shop, &load, window, pairs).await);
    load.stop().await;
    Arc::clone(&shop.runtime).shutdown(None).await;
    let missed = verdicts.iter().filter(|is_kept| !**is_kept).count();
    println!("{} of {} bounds are kept", verdicts.len() - missed, verdicts.len());
}

/// Whether the page answers as fast as it is promised.
async fn measure_page(shop: &Shop, page: &str) -> bool {
    let mut times = Vec::new();
    for _ in 0..REQUESTS {
        times.push(ask(&shop.url(page)).await.1);
    }
    times.sort_unstable();
    let (p50, p99) = (times[REQUESTS / 2], times[REQUESTS * 99 / 100]);
    let is_kept = p99 < PROMISED;
    let word = verdict(is_kept);
    println!(
        "{page}: p50 {p50:.1?}, p99 {p99:.1?} of {REQUESTS} requests beside the load, bound {PROMISED:?}: {word}"
    );
    is_kept
}

/// Whether somebody who opens a page each second, and keeps a live one open, costs the load no more than is promised. Windows
/// with and without take turns, and change their order, because a machine's speed changes.
async fn measure_cost(shop: &Shop, load: &Load, window: Duration, pairs: u32) -> bool {
    let mut found = Vec::new();
    for pair in 0..pairs {
        let rates = if pair % 2 == 0 {
            let without = load.rate(window).await;
            (without, rate_with_reader(shop, load, window).await)
        } else {
            let with = rate_with_reader(shop, load, window).await;
            (load.rate(window).await, with)
        };
        found.push(rates);
    }
    let mut costs: Vec<f64> =
        found.iter().map(|(without, with)| (without - with) / without * 100.0).collect();
    costs.sort_by(f64::total_cmp);
    let (without, with) = found.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let count = f64::from(pairs.max(1));
    let (Some(least), Some(most)) = (costs.first(), costs.last()) else { return true };
    let median = f64::midpoint(costs[(costs.len() - 1) / 2], costs[costs.len() / 2]);
    let is_kept = median < PROMISED_COST;
    println!(
        "load: {:.0} instances/s without and {:.0} with the console in use; cost {median:.1} % in the median of {pairs} pairs \
         ({least:.1} to {most:.1}), bound {PROMISED_COST} %: {}",
        without / count,
        with / count,
        verdict(is_kept)
    );
    is_kept
}

fn verdict(is_kept: bool) -> &'static str {
    if is_kept { "kept" } else { "MISSED" }
}

async fn rate_with_reader(shop: &Shop, load: &Load, window: Duration) -> f64 {
    let pages = ["/overview", "/instances", "/instance?id=long", "/failures"].map(|page| shop.url(page));
    let live = shop.url("/live?view=overview");
    let (reader, stream) = (tokio::spawn(read(pages)), tokio::spawn(keep_open(live)));
    let rate = load.rate(window).await;
    reader.abort();
    stream.abort();
    rate
}

async fn read(urls: [String; 4]) {
    loop {
        for url in &urls {
            ask(url).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Keeps a live stream open. It ends when the task is aborted: a thread that still waits for the stream reads it for a moment
/// longer and gives up.
async fn keep_open(url: String) {
    let is_wanted = Arc::new(AtomicBool::new(true));
    let end = EndOnDrop(Arc::clone(&is_wanted));
    let stream = move || {
        let agent = ureq::Agent::new_with_config(
            ureq::Agent::config_builder().timeout_recv_body(Some(Duration::from_secs(1))).build(),
        );
        while is_wanted.load(Ordering::Relaxed) {
            let answer = agent.get(&url).header("authorization", format!("Bearer {OPERATOR}")).call();
            let Ok(mut answer) = answer else { break };
            let mut part = [0; 256];
            let mut reader = answer.body_mut().as_reader();
            while is_wanted.load(Ordering::Relaxed) && reader.read(&mut part).is_ok_and(|length| length > 0) {
            }
        }
    };
    let _ = tokio::task::spawn_blocking(stream).await;
    drop(end);
}

struct EndOnDrop(Arc<AtomicBool>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Waits until a page shows what it first has to read in the background.
async fn wait_until_filled(url: &str, text: &str) {
    let begin = Instant::now();
    loop {
        let (page, _) = ask(url).await;
        if page.contains(text) && !page.contains("The others are being read.") {
            return;
        }
        if begin.elapsed() > WAIT_MAX {
            println!("{url} was not filled within {WAIT_MAX:?}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A page, and how long it took.
async fn ask(url: &str) -> (String, Duration) {
    let url = url.to_owned();
    let request = move || {
        let begin = Instant::now();
        let mut answer =
            ureq::get(&url).header("authorization", format!("Bearer {OPERATOR}")).call().expect("an answer");
        let text = answer.body_mut().read_to_string().expect("a page");
        let took = begin.elapsed();
        assert!(text.contains("All times are UTC."));
        (text, took)
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
