//! Prometheus: the metrics of a node on `/metrics`, with the buckets that the dashboard `docs/grafana/duroxide.json` expects.
//!
//! Without an argument it runs some orders and prints what Prometheus would read. With an address it keeps taking orders, to
//! be looked at with Prometheus and Grafana: `cargo run -p prometheus-example --example prometheus -- 127.0.0.1:9464`.

use std::{
    error::Error,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use duroxide::{prelude::*, runtime::ObservabilityConfig};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

/// Upper bounds of buckets. Without buckets the exporter makes summaries, whose quantiles cannot be added up over nodes.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0, 86_400.0];
const MILLISECONDS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 10_000.0, 60_000.0];
const COUNTS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 1_000.0, 10_000.0, 100_000.0];

/// Serves `/metrics`. It is open to whoever reaches the address, so it is one of the loopback here.
fn serve_metrics(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let suffix = |text: &str| Matcher::Suffix(text.to_owned());
    PrometheusBuilder::new()
        .with_http_listener(address)
        .set_buckets_for_metric(suffix("_seconds"), &SECONDS)?
        .set_buckets_for_metric(suffix("_ms"), &MILLISECONDS)?
        .set_buckets_for_metric(Matcher::Full("duroxide_orchestration_turns".to_owned()), &COUNTS)?
        .set_buckets_for_metric(Matcher::Full("duroxide_orchestration_history_size".to_owned()), &COUNTS)?
        .install()?;
    Ok(())
}

/// Charges a card, ships in a child, and continues as new for the second parcel. Every fifth order is refused.
async fn order(ctx: OrchestrationContext, parcel: String) -> Result<String, String> {
    ctx.schedule_activity("Charge", ctx.instance_id()).await?;
    ctx.schedule_timer(Duration::from_millis(5)).await;
    ctx.schedule_sub_orchestration("Ship", &parcel).await?;
    if parcel == "first" { ctx.continue_as_new("second").await } else { Ok("delivered".to_owned()) }
}

async fn ship(ctx: OrchestrationContext, parcel: String) -> Result<String, String> {
    ctx.schedule_activity("Carry", parcel).await
}

async fn charge(_ctx: ActivityContext, order: String) -> Result<String, String> {
    if order.ends_with('0') || order.ends_with('5') {
        Err("the card is refused".to_owned())
    } else {
        Ok(order)
    }
}

async fn start_node() -> Result<(Arc<Runtime>, Client), Box<dyn Error>> {
    let activities = ActivityRegistry::builder()
        .register("Charge", charge)
        .register("Carry", |_ctx, parcel| async move { Ok(parcel) })
        .build();
    let orchestrations =
        OrchestrationRegistry::builder().register("Order", order).register("Ship", ship).build();
    // Gauges are read from the store now and then.
    let observability =
        ObservabilityConfig { gauge_poll_interval: Duration::from_millis(100), ..Default::default() };
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let options = RuntimeOptions { observability, ..Default::default() };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    Ok((runtime, Client::new(store)))
}

async fn take_orders(client: &Client, numbers: std::ops::Range<u64>) -> Result<(), Box<dyn Error>> {
    for number in numbers.clone() {
        client.start_orchestration(format!("order-{number}"), "Order", "first").await?;
    }
    for number in numbers {
        client.wait_for_orchestration(&format!("order-{number}"), Duration::from_secs(30)).await?;
    }
    Ok(())
}

/// What Prometheus reads.
fn scrape(address: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    Ok(body.to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let asked: Option<SocketAddr> = std::env::args().nth(1).map(|address| address.parse()).transpose()?;
    let free = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = asked.map_or_else(free, Ok)?;
    // The recorder first: a runtime describes its metrics when it starts.
    serve_metrics(address)?;
    let (runtime, client) = start_node().await?;
    if asked.is_some() {
        println!("http://{address}/metrics, until you press Ctrl-C");
        for batch in 0.. {
            take_orders(&client, batch * 10..(batch + 1) * 10).await?;
        }
    }
    take_orders(&client, 0..20).await?;
    while !scrape(address)?.contains("duroxide_pending_orchestrations 0\n") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Ends are counted behind their commits, so all are counted when the node has stopped.
    runtime.shutdown(None).await;
    print!("{}", scrape(address)?);
    Ok(())
}
