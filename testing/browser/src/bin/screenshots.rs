//! `cargo xtask screenshots`: pictures of the console's main pages, for the documents.

#![allow(clippy::expect_used)]

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use browser::{
    driver::Driver,
    page::{Page, key},
    served::{OPERATOR, Shop},
};

/// The name of a picture, its page, its size, and whether it is dark.
const PICTURES: [(&str, &str, u32, u32, bool); 7] = [
    ("overview", "/overview", 1_180, 900, false),
    ("instances", "/instances", 1_180, 800, false),
    ("instance", "/instance?id=order-2041", 1_180, 900, false),
    ("failures", "/failures", 1_180, 640, false),
    ("nodes", "/nodes", 1_180, 840, false),
    ("instance-dark", "/instance?id=order-2041", 1_180, 760, true),
    ("phone", "/instance?id=order-2041", 400, 860, false),
];

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs/pictures".to_owned());
    let tokio = tokio::runtime::Runtime::new().expect("a runtime");
    let Some(driver) = Driver::start() else { return ExitCode::FAILURE };
    let shop = tokio.block_on(story());
    for (name, path, width, height, dark) in PICTURES {
        let page = driver.open(width, height, dark);
        sign_in(&page, &shop);
        page.go(&shop.url(path));
        page.wait_for("document.getElementById('pause').dataset.state === 'live'");
        page.screenshot(&Path::new(&folder).join(format!("console-{name}.png")));
        println!("    console-{name}.png");
    }
    tokio.block_on(async { Arc::clone(&shop.runtime).shutdown(None).await });
    ExitCode::SUCCESS
}

fn sign_in(page: &Page, shop: &Shop) {
    page.go(&shop.url(""));
    page.fill("#token", OPERATOR);
    page.press(key::ENTER);
    page.text_of("nav[aria-label=Console]");
    page.wait_for("document.body.innerText.includes('By name and version')");
}

/// A day of a shop, with something of everything.
async fn story() -> Shop {
    let shop = Shop::open(24_000).await;
    for (id, input) in [
        ("order-2039", "kettle"),
        ("order-2040", "cup"),
        ("order-2041", "{\"item\":\"teapot\",\"price\":42,\"to\":{\"name\":\"Ada\",\"city\":\"London\"}}"),
    ] {
        shop.waiting_order(id, input).await;
    }
    shop.client.raise_event("order-2039", "Approval", "by Grace").await.expect("raises");
    shop.client.wait_for_orchestration("order-2039", browser::served::TIMEOUT).await.expect("ends");
    shop.client.raise_event("order-2041", "approval", "by Grace").await.expect("raises");
    for (id, name) in [("reminder-7", "Reminder"), ("refund-1", "Refund")] {
        shop.client.start_orchestration(id, name, "order-2038").await.expect("starts");
    }
    shop.failed_payment("payment-8812", "5105").await;
    for n in 1..8 {
        let id = format!("invoice-{n}");
        shop.client.start_orchestration(&id, "Invoice", format!("c-{n}")).await.expect("starts");
        shop.client.wait_for_orchestration(&id, browser::served::TIMEOUT).await.expect("ends");
    }
    shop.client.enqueue_event("order-1999", "changes", "{\"item\":\"cup\"}").await.expect("enqueues");
    // The raised event is recorded when the explanation can name it.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !shop.client.explain("order-2041").await.expect("explains").to_string().contains("`approval`") {
        assert!(tokio::time::Instant::now() < deadline, "the event never arrived");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    shop
}
