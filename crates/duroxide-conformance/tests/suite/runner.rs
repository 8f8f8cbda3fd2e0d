//! Running the suite from a program.

use std::{collections::BTreeSet, panic::AssertUnwindSafe};

use duroxide_conformance::provider_validations::{VALIDATIONS, run_topic};
use futures_util::FutureExt;

use crate::{MemoryFactory, fault::BrokenRule};

async fn panic_of(run: impl Future<Output = ()>) -> String {
    let panic = AssertUnwindSafe(run).catch_unwind().await.expect_err("the run must fail");
    *panic.downcast::<String>().expect("the panic has a text")
}

#[tokio::test]
async fn a_topic_that_a_provider_keeps_passes() {
    run_topic(&MemoryFactory::default(), "custom_status").await;
}

#[tokio::test]
async fn all_failures_of_a_topic_are_reported_by_name() {
    let text =
        panic_of(run_topic(&MemoryFactory::faulty(BrokenRule::LosesStateChanges), "custom_status")).await;
    for name in ["custom_status::test_custom_status_set", "custom_status::test_custom_status_clear"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(!text.contains("test_custom_status_nonexistent_instance"), "{text}");
}

#[tokio::test]
async fn an_unknown_topic_is_refused() {
    let text = panic_of(run_topic(&MemoryFactory::default(), "nonsense")).await;
    assert_eq!(text, "unknown topic nonsense");
}

#[test]
fn every_validation_is_listed_once() {
    let names: BTreeSet<(&str, &str)> =
        VALIDATIONS.iter().map(|validation| (validation.topic, validation.name)).collect();
    assert_eq!(names.len(), VALIDATIONS.len());
}
