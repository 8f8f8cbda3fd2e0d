//! The console in Chromium, on a store with 100,000 instances.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "this is a test")]

use std::{sync::Arc, time::Duration};

use browser::{
    driver::Driver,
    page::{Page, key},
    served::{OPERATOR, Shop, VIEWER},
};
use duroxide::{OrchestrationStatus, providers::Provider};
use tokio::runtime::Runtime;

const INSTANCES: u32 = 100_000;

/// A browser, a shop and the runtime that it lives in. WebDriver's calls block, so tests are no async functions.
struct Visit {
    page: Page,
    shop: Shop,
    tokio: Runtime,
    _driver: Driver,
}

impl Visit {
    /// `None` without a browser.
    fn new(instances: u32, width: u32) -> Option<Self> {
        let driver = Driver::start()?;
        let tokio = Runtime::new().unwrap();
        let shop = tokio.block_on(Shop::open(instances));
        let page = driver.open(width, 900, false);
        Some(Self { page, shop, tokio, _driver: driver })
    }

    fn signed_in(instances: u32, width: u32, token: &str) -> Option<Self> {
        let visit = Self::new(instances, width)?;
        visit.page.go(&visit.shop.url(""));
        // Without a session the console answers with the login form and 401, which the browser notes in its console.
        visit.page.fill("#token", token);
        visit.page.press(key::ENTER);
        visit.page.text_of("nav[aria-label=Console]");
        visit.page.complaints();
        Some(visit)
    }

    fn go(&self, path: &str) {
        self.page.go(&self.shop.url(path));
    }

    fn order(&self, id: &str) {
        self.tokio.block_on(self.shop.waiting_order(id, "{\"item\":\"teapot\"}"));
    }

    fn payment(&self, id: &str, input: &str) {
        self.tokio.block_on(self.shop.failed_payment(id, input));
    }

    fn ended(&self, id: &str) -> OrchestrationStatus {
        let client = &self.shop.client;
        self.tokio.block_on(client.wait_for_orchestration(id, Duration::from_secs(60))).unwrap()
    }

    /// Nothing was complained about, and nothing was asked of anybody else.
    fn end(self) {
        assert_eq!(self.page.complaints(), Vec::<String>::new());
        let origin = self.shop.origin();
        let elsewhere: Vec<String> =
            self.page.requests().into_iter().filter(|url| !is_own(url, &origin)).collect();
        assert_eq!(elsewhere, Vec::<String>::new());
        self.tokio.block_on(async { Arc::clone(&self.shop.runtime).shutdown(None).await });
    }
}

/// The page that a browser begins with comes out of the browser.
fn is_own(url: &str, origin: &str) -> bool {
    [origin, "chrome://", "chrome-untrusted://", "data:", "about:"].iter().any(|own| url.starts_with(own))
}

#[path = "console/actions.rs"]
mod actions;
#[path = "console/looks.rs"]
mod looks;
