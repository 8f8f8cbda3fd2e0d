//! Tests that every provider call is measured and handed on.

use std::{collections::BTreeSet, time::Duration};

use duroxide_provider::testing::{NotingProvider, call_every_method};

use super::*;
use crate::{
    fixture::{FakeStore, Recorder},
    observability::ObservabilityConfig,
};

const SECOND: Duration = Duration::from_secs(1);

/// Calls that are answered at once are not measured.
const QUESTIONS: [&str; 8] = [
    "name",
    "version",
    "as_management_capability",
    "commits_rounds",
    "serves_batches",
    "set_max_attempts",
    "watch",
    "clock",
];

fn metrics() -> Arc<MetricsProvider> {
    Arc::new(MetricsProvider::new(&ObservabilityConfig::default()).unwrap())
}

/// A method with a default body that is not handed on would be answered by that body, and nothing else would notice.
#[tokio::test]
async fn every_call_reaches_the_inner_provider_under_its_own_name() {
    let inner = Arc::new(NotingProvider::default());
    let wrapped = InstrumentedProvider::new(Arc::clone(&inner) as Arc<dyn Provider>, Some(metrics()));
    let called = call_every_method(&wrapped).await;
    assert_eq!(inner.take_calls(), called);
    assert_eq!(called[..QUESTIONS.len()], QUESTIONS);
}

#[tokio::test]
async fn capabilities_of_the_inner_provider_are_kept() {
    let inner = FakeStore::telling();
    let wrapped = InstrumentedProvider::new(Arc::clone(&inner) as Arc<dyn Provider>, None);
    let wrapped: &dyn Provider = &wrapped;
    assert_eq!((wrapped.name(), wrapped.version()), ("fake", "1.2.3"));
    assert!(wrapped.commits_rounds() && wrapped.serves_batches());
    assert!(wrapped.watch("order").is_some());
    assert!(wrapped.as_management_capability().is_none());
    wrapped.set_max_attempts(3);
    assert_eq!(inner.calls(), ["watch", "set_max_attempts"]);
}

/// Both ways to commit a round are one operation, and both ways to renew an activity.
#[tokio::test]
async fn every_call_is_measured() {
    let recorder = Recorder::default();
    let wrapped = InstrumentedProvider::new(Arc::new(NotingProvider::default()), Some(metrics()));
    let called = {
        let _guard = metrics::set_default_local_recorder(&recorder);
        call_every_method(&wrapped).await
    };
    let other_names = ["commit_round_ref", "enqueue_within", "renew_work_item"];
    let not_measured = [&QUESTIONS[..], &other_names].concat();
    let expected: BTreeSet<_> = called
        .into_iter()
        .filter(|method| !not_measured.contains(method))
        .map(|operation| {
            format!("duroxide_provider_operation_duration_seconds{{operation={operation},status=error}}")
        })
        .collect();
    assert_eq!(recorder.histograms().into_keys().collect::<BTreeSet<_>>(), expected);
}

#[tokio::test]
async fn success_and_errors_are_counted_apart() {
    let recorder = Recorder::default();
    let metrics = metrics();
    let wrapped = InstrumentedProvider::new(FakeStore::telling(), Some(Arc::clone(&metrics)));
    let wrapped: &dyn Provider = &wrapped;
    {
        let _guard = metrics::set_default_local_recorder(&recorder);
        wrapped.read("order").await.unwrap();
        wrapped.ack_work_item("t", None).await.unwrap_err();
        wrapped.renew_work_item_lock("t", SECOND).await.unwrap_err();
    }
    let measured: Vec<_> = recorder.histograms().into_keys().collect();
    let expected = [("ack_work_item", "error"), ("read", "success"), ("renew_work_item_lock", "error")];
    let expected = expected.map(|(operation, status)| {
        format!("duroxide_provider_operation_duration_seconds{{operation={operation},status={status}}}")
    });
    assert_eq!(measured.into_iter().collect::<BTreeSet<_>>(), expected.into());
    let errors: Vec<_> = recorder.counters().into_iter().collect();
    let expected = [
        ("duroxide_provider_errors_total{error_type=permanent,operation=ack_work_item}".to_owned(), 1),
        ("duroxide_provider_errors_total{error_type=retryable,operation=renew_work_item_lock}".to_owned(), 1),
    ];
    assert_eq!(errors, expected);
    assert_eq!(metrics.snapshot().provider_errors, 2);
}
