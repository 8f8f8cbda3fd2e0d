//! Every action, by mouse and by keyboard.

use super::*;

#[test]
fn every_action_of_an_instance() {
    let Some(visit) = Visit::signed_in(INSTANCES, 1_280, OPERATOR) else { return };
    let page = &visit.page;
    for id in ["order-1", "order-2"] {
        visit.order(id);
    }
    visit.go("/instance?id=order-1");
    page.click(".actions details:nth-of-type(1) summary");
    page.fill("#raise-data", "by Ada");
    page.click("form[action$=raise] button");
    page.wait_for_text(".notice", "Event sent");
    let OrchestrationStatus::Completed { output, .. } = visit.ended("order-1") else { panic!() };
    assert!(output.contains("by Ada"), "{output}");

    visit.go("/instance?id=order-2");
    page.click(".actions details:nth-of-type(2) summary");
    page.fill("#enqueue-name", "inbox");
    page.fill("#enqueue-data", "hello");
    page.click("form[action$=enqueue] button");
    page.wait_for_text(".notice", "added to the queue");
    page.click(".actions details:nth-of-type(3) summary");
    page.fill("#cancel-reason", "not wanted");
    page.click("form[action$=cancel] button");
    page.wait_for_text(".notice", "Cancellation requested");
    let OrchestrationStatus::Failed { details, .. } = visit.ended("order-2") else { panic!() };
    assert_eq!(details.display_message(), "canceled: not wanted");

    visit.go("/instance?id=order-2");
    page.click(".actions details:nth-of-type(1) summary");
    page.click("form[action$=start-again] button");
    page.wait_for_text("h1", "order-2-again-1");
    visit.go("/instance?id=order-2");
    page.click(".actions details:nth-of-type(2) summary");
    page.click("form[action$=delete] input[name=sure]");
    page.click("form[action$=delete] button");
    page.wait_for_text(".notice", "Deleted");
    assert!(visit.tokio.block_on(visit.shop.client.get_instance_info("order-2")).is_err());
    visit.end();
}

#[test]
fn bulk_actions_show_the_affected_instances_first() {
    let Some(visit) = Visit::signed_in(1_000, 1_280, OPERATOR) else { return };
    let page = &visit.page;
    for id in ["bulk-1", "bulk-2"] {
        visit.order(id);
    }
    visit.payment("bulk-3", "4711");
    visit.go("/instances?prefix=bulk-");
    page.click("#pick-all");
    page.click("button[value=cancel]");
    page.wait_for_text("h1", "Cancel: 2 instances");
    page.wait_for_text("body", "has ended already");
    page.click("#confirm");
    page.wait_for_text(".notice", "Cancellation requested");
    for id in ["bulk-1", "bulk-2"] {
        assert!(matches!(visit.ended(id), OrchestrationStatus::Failed { .. }));
    }
    visit.go("/instances?prefix=bulk-3");
    page.click("input[name=all]");
    page.click("button[value=retry]");
    page.click("#confirm");
    page.wait_for_text(".notice", "started again");
    assert!(matches!(visit.ended("bulk-3-again-1"), OrchestrationStatus::Failed { .. }));
    visit.go("/instances?prefix=bulk-");
    page.click("input[name=all]");
    page.click("button[value=delete]");
    page.wait_for_text("h1", "Delete: 4 instances");
    page.click("#confirm");
    page.wait_for_text(".notice", "were deleted");
    visit.go("/instances?prefix=bulk-");
    page.wait_for_text("body", "No instance matches");
    visit.end();
}

#[test]
fn dead_letters_are_retried_and_discarded() {
    let Some(visit) = Visit::signed_in(100, 1_280, OPERATOR) else { return };
    visit.tokio.block_on(make_dead_letters(&visit.shop));
    let page = &visit.page;
    visit.go("/failures");
    assert_eq!(page.count("form[action$=discard-dead-letter]"), 2);
    page.click("form[action$=discard-dead-letter] button");
    page.wait_for_text(".notice", "Discarded");
    assert_eq!(page.count("form[action$=retry-dead-letter]"), 1);
    page.click("form[action$=retry-dead-letter] button");
    page.wait_for_text(".notice", "Put back");
    visit.end();
}

/// Messages for instances that were never started become dead letters when they are claimed.
async fn make_dead_letters(shop: &Shop) {
    let admin = shop.store.as_management_capability().unwrap();
    for id in ["nobody-1", "nobody-2"] {
        shop.client.enqueue_event(id, "inbox", "lost").await.unwrap();
    }
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while admin.list_dead_letters(None).await.unwrap().len() < 2 {
        assert!(tokio::time::Instant::now() < deadline, "no dead letters");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn the_keyboard_is_enough() {
    let Some(visit) = Visit::new(1_000, 1_280) else { return };
    let page = &visit.page;
    visit.order("keys-1");
    visit.go("");
    // The form has the focus.
    page.press(OPERATOR);
    page.press(key::ENTER);
    page.text_of("nav[aria-label=Console]");
    page.complaints();
    visit.go("/instances?prefix=keys-1");
    tab_to(page, "document.activeElement.textContent === 'keys-1'");
    page.press(key::ENTER);
    page.wait_for("location.pathname.endsWith('/instance')");
    tab_to(page, "document.activeElement.textContent === 'Raise an event'");
    page.press(key::ENTER);
    tab_to(page, "document.activeElement.id === 'raise-data'");
    page.press("typed");
    page.press(key::TAB);
    page.press(key::SPACE);
    page.wait_for_text(".notice", "Event sent");
    let OrchestrationStatus::Completed { output, .. } = visit.ended("keys-1") else { panic!() };
    assert!(output.contains("typed"), "{output}");
    visit.end();
}

/// Presses Tab until a condition holds; every stop must be visible.
fn tab_to(page: &Page, condition: &str) {
    for _ in 0..120 {
        page.press(key::TAB);
        if page.script(&format!("return {condition}")) == serde_json::Value::Bool(true) {
            let outline = page.script("return getComputedStyle(document.activeElement).outlineStyle");
            assert_ne!(outline, "none", "the focus cannot be seen");
            return;
        }
    }
    panic!("Tab never reached {condition}");
}
