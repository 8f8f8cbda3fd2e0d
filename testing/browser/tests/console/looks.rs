//! Every page, on a large screen and a small one, with and without scripts, and with hostile payloads.

use super::*;

const PAGES: [&str; 6] = [
    "/overview",
    "/instances",
    "/instances?status=Failed&prefix=payment-",
    "/instance?id=order-1",
    "/failures",
    "/nodes",
];

/// The texts of each page on the store of 100,000.
fn assert_pages(visit: &Visit) {
    let said = [
        ("By name and version", "88,0"),
        ("order-0006000", "Running"),
        ("was refused by the bank", "payment-0006000"),
        ("Approval", "Timeline"),
        ("was refused by the bank", "Payment"),
        ("Not safe to retire", "Order 2.0.0"),
    ];
    for (path, (one, other)) in PAGES.iter().zip(said) {
        visit.go(path);
        let text = visit.page.text();
        assert!(text.contains(one) && text.contains(other), "{path}: {text}");
    }
}

#[test]
fn every_page_of_a_large_store_without_a_complaint() {
    let Some(visit) = Visit::signed_in(INSTANCES, 1_280, OPERATOR) else { return };
    visit.order("order-1");
    visit.go("/overview");
    visit.page.wait_for("document.body.innerText.includes('By name and version')");
    assert_pages(&visit);
    // Pages of the list go on where the one before ended.
    visit.go("/instances?name=Hello");
    let first = visit.page.text_of("tbody th");
    visit.page.click("a[rel=next]");
    visit.page.wait_for("location.href.includes('cursor')");
    assert_ne!(visit.page.text_of("tbody th"), first);
    visit.end();
}

#[test]
fn everything_can_be_read_without_scripts() {
    let Some(visit) = Visit::signed_in(1_000, 1_280, VIEWER) else { return };
    visit.order("order-1");
    visit.page.disable_scripts(true);
    for path in PAGES {
        visit.go(path);
        assert!(visit.page.text().contains("All times are UTC."), "{path}");
    }
    visit.go("/instances");
    visit.page.fill("#prefix", "order-1");
    visit.page.click("form[role=search] button");
    // Each of these is on the next page only, so that the browser waits for it.
    visit.page.text_of("#prefix[value='order-1']");
    assert!(visit.page.url().contains("prefix=order-1"));
    visit.page.click("tbody th a");
    visit.page.wait_for_text(".explain", "Why it does not move");
    visit.page.click(".history .when a");
    visit.page.wait_for_text("main > section.card", "Order 2.0.0 started");
    visit.page.click(".aside button:not([hidden])");
    visit.page.wait_for_text(".alone", "You are signed out");
    visit.page.disable_scripts(false);
    visit.page.requests();
    visit.page.complaints();
    visit.end();
}

#[test]
fn nothing_is_wider_than_a_phone() {
    let Some(visit) = Visit::signed_in(1_000, 375, OPERATOR) else { return };
    visit.order("order-1");
    visit.payment("payment-long", &"4711".repeat(60));
    for path in PAGES.iter().chain(&["/instance?id=payment-long"]) {
        visit.go(path);
        let width = visit.page.script("return document.documentElement.scrollWidth");
        assert!(width.as_u64().unwrap() <= 375, "{path} is {width} wide");
        let small = visit.page.script(
            "return [...document.querySelectorAll('button, .button, nav a')].filter(it => it.offsetParent && it.getBoundingClientRect().height < 24).map(it => it.textContent)",
        );
        assert_eq!(small, serde_json::json!([]), "too small for a finger on {path}");
    }
    visit.end();
}

#[test]
fn hostile_payloads_do_nothing() {
    let Some(visit) = Visit::signed_in(100, 1_280, OPERATOR) else { return };
    let hostile =
        "<script>window.hit=1</script><img src=x onerror='window.hit=2'>\"><svg onload=window.hit=3>";
    let id = "evil<img src=x onerror=window.hit=4>";
    visit.payment(id, hostile);
    let client = visit.shop.client.clone();
    visit.tokio.block_on(client.start_orchestration("pending", hostile, hostile)).unwrap();
    let encoded: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for path in [
        "/overview",
        "/instances",
        &format!("/instance?id={encoded}"),
        "/instance?id=pending",
        "/failures",
        "/nodes",
    ] {
        visit.go(path);
        assert!(visit.page.script("return window.hit === undefined").as_bool().unwrap(), "{path}");
    }
    visit.go(&format!("/instance?id={encoded}"));
    let text = visit.page.text();
    assert!(text.contains("<script>window.hit=1</script>") && text.contains(id), "{text}");
    visit.end();
}

#[test]
fn a_page_follows_its_instance_until_it_is_paused() {
    let Some(visit) = Visit::signed_in(100, 1_280, OPERATOR) else { return };
    visit.order("order-1");
    visit.order("order-2");
    visit.go("/instance?id=order-1");
    visit.page.wait_for("document.getElementById('pause').dataset.state === 'live'");
    visit.page.click(".history details summary");
    visit.tokio.block_on(visit.shop.client.raise_event("order-1", "Approval", "yes")).unwrap();
    visit.page.wait_for("document.querySelector('.title .pill').textContent === 'Completed'");
    assert!(visit.page.count(".history details[open]") > 0, "what was open stays open");
    visit.go("/instance?id=order-2");
    visit.page.wait_for("document.getElementById('pause').dataset.state === 'live'");
    visit.page.click("#pause");
    visit.page.wait_for_text("#pause", "Paused · resume");
    visit.tokio.block_on(visit.shop.client.raise_event("order-2", "Approval", "yes")).unwrap();
    visit.ended("order-2");
    visit.page.wait_for_text(".title .pill", "Running");
    visit.page.click("#pause");
    visit.go("/instance?id=order-2");
    visit.page.wait_for_text(".title .pill", "Completed");
    visit.end();
}

#[test]
fn a_filter_shows_matching_instances_while_its_text_is_typed() {
    let Some(visit) = Visit::signed_in(1_000, 1_280, OPERATOR) else { return };
    visit.order("order-special");
    visit.go("/instances");
    visit.page.fill("#prefix", "order-spec");
    visit.page.wait_for("document.querySelectorAll('tbody tr').length === 1");
    assert!(visit.page.url().contains("prefix=order-spec"), "it can be bookmarked: {}", visit.page.url());
    visit.end();
}
