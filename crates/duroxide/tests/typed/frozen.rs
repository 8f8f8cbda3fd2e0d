//! A rename or a changed type fails a test instead of a running instance.

use std::{collections::BTreeMap, fs};

use duroxide::{OrchestrationRegistry, prelude::*, typed::Handlers};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    id: u64,
    lines: Vec<(String, u32)>,
    payment: Payment,
    notes: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Payment {
    Cash,
    Card { number: String },
}

#[duroxide::activity]
async fn charge(_ctx: ActivityContext, _order: Order) -> Result<String, String> {
    Ok(String::new())
}

#[duroxide::orchestration]
async fn order(_ctx: OrchestrationContext, _order: Order) -> Result<(), CallError<String>> {
    Ok(())
}

/// The same with another type.
mod changed {
    use super::*;

    #[duroxide::activity]
    pub(super) async fn charge(_ctx: ActivityContext, _cents: u64) -> Result<String, String> {
        Ok(String::new())
    }

    #[duroxide::orchestration(name = "order", version = "2.0.0")]
    pub(super) async fn order(_ctx: OrchestrationContext, _order: Order) -> Result<(), CallError<String>> {
        Ok(())
    }
}

fn handlers() -> Handlers {
    let by_name =
        OrchestrationRegistry::builder().register("Legacy", |_, input| async move { Ok(input) }).build();
    Handlers::new().activity::<charge>().orchestration::<order>().orchestrations(by_name)
}

#[test]
fn these_handlers_are_frozen() {
    handlers().check_frozen("tests/typed/handlers.json").unwrap();
}

#[test]
fn a_change_is_shown_with_the_frozen_lines() {
    let changed = Handlers::new().activity::<changed::charge>().orchestration::<changed::order>();
    let text = changed.check_frozen("tests/typed/handlers.json").unwrap_err().to_string();
    for line in [
        "handlers are not what tests/typed/handlers.json says:",
        "- activities / charge / input / .id: u64",
        "- activities / charge / input / .payment<Card>.number: string",
        "+ activities / charge / input / : u64",
        "- orchestrations / Legacy 1.0.0 / text",
        "- orchestrations / order 1.0.0 / input / .lines[].1: u32",
        "+ orchestrations / order 2.0.0 / input / .lines[].1: u32",
        "Instances that run expect the lines with -. If none do, run the test with DUROXIDE_FREEZE=1.",
    ] {
        assert!(text.lines().any(|found| found == line), "`{line}` is not in\n{text}");
    }
    assert!(!text.contains("charge / output"), "what is the same is not shown:\n{text}");
}

#[test]
fn a_missing_file_is_not_written_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handlers.json");
    let text = handlers().check_frozen(&path).unwrap_err().to_string();
    assert!(text.ends_with("does not exist: run the test with DUROXIDE_FREEZE=1 to write it"), "{text}");
    assert!(fs::metadata(&path).is_err());
}

#[test]
fn handlers_that_exclude_each_other_are_not_frozen() {
    let twice = handlers().and(handlers());
    let text = twice.check_frozen("tests/typed/handlers.json").unwrap_err().to_string();
    assert_eq!(
        text,
        "duplicate activity in merge: charge@1.0.0; duplicate orchestration in merge: Legacy@1.0.0; duplicate \
         orchestration in merge: order@1.0.0"
    );
}
