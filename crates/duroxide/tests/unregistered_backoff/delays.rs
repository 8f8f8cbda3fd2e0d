//! The delays with which items are given back.
//!
//! An intercepting provider notes every abandon and drops its delay, so that minutes of backoff take no time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use duroxide::{Client, RuntimeOptions, providers::Provider};

use crate::{
    bounced, callers,
    fixture::{
        File, ended, failure,
        intercept::{Intercept, Intercepted, Queue},
        node, quick_options,
    },
    no_activities, no_orchestrations, poison,
};

/// Notes every abandon and makes the item visible at once.
#[derive(Default)]
struct Impatient {
    abandons: Mutex<Vec<(Queue, Option<Duration>, bool)>>,
}

impl Impatient {
    /// The delays in seconds of the counted abandons to one queue.
    fn seconds(&self, queue: Queue) -> Vec<f64> {
        let abandons = self.abandons.lock().unwrap();
        let counted = abandons.iter().filter(|(to, _, ignore_attempt)| *to == queue && !ignore_attempt);
        counted.map(|(_, delay, _)| delay.expect("backoff has a delay").as_secs_f64()).collect()
    }
}

impl Intercept for Impatient {
    fn abandon(&self, queue: Queue, delay: Option<Duration>, ignore_attempt: bool) -> Option<Duration> {
        self.abandons.lock().unwrap().push((queue, delay, ignore_attempt));
        None
    }
}

/// Runs both kinds of unregistered work to their end and gives the delays, orchestration first.
async fn delays(options: RuntimeOptions) -> (Vec<f64>, Vec<f64>) {
    let file = File::new();
    let provider = Intercepted::new(file.open().await, Impatient::default());
    let store: Arc<dyn Provider> = provider.clone();
    let runtime = node(&store, no_activities(), callers(), options.clone()).await;
    let client = Client::new(store);
    client.start_orchestration("ghost", "NoSuchOrchestration", "x").await.unwrap();
    client.start_orchestration("caller", "Caller", "x").await.unwrap();
    for instance in ["ghost", "caller"] {
        let (attempt, max, _) = poison(failure(ended(&client, instance).await));
        assert_eq!((attempt, max), (options.max_attempts + 1, options.max_attempts));
    }
    runtime.shutdown(None).await;
    let noted = &provider.intercept;
    (noted.seconds(Queue::Orchestrator), noted.seconds(Queue::Worker))
}

/// S0.36: the delays are 1, 2 and 4 seconds, and the fourth fetch poisons. S0.26, S0.28, S0.38, S0.39, S0.40.
#[tokio::test]
async fn three_attempts_are_delayed_by_one_two_and_four_seconds() {
    let options = RuntimeOptions { max_attempts: 3, ..RuntimeOptions::default() };
    assert_eq!(delays(options).await, (vec![1.0, 2.0, 4.0], vec![1.0, 2.0, 4.0]));
}

/// S0.12, S0.37, S0.41: with the defaults, ten fetches are given back, about five and a half minutes in all.
#[tokio::test]
async fn with_the_defaults_ten_fetches_are_given_back() {
    let expected = vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0];
    assert_eq!(delays(RuntimeOptions::default()).await, (expected.clone(), expected));
}

/// S0.6, S0.30, S0.42.
#[tokio::test]
async fn base_and_maximum_are_configurable() {
    let mut options = quick_options();
    options.max_attempts = 5;
    options.unregistered_backoff.base_delay = Duration::from_millis(250);
    options.unregistered_backoff.max_delay = Duration::from_secs(1);
    let expected = vec![0.25, 0.5, 1.0, 1.0, 1.0];
    assert_eq!(delays(options).await, (expected.clone(), expected));
}

/// S0.25: while the item bounces, nothing is written.
#[tokio::test]
async fn bouncing_writes_no_history() {
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), no_orchestrations(), RuntimeOptions::default()).await;
    let client = Client::new(store.clone());
    client.start_orchestration("ghost", "NoSuchOrchestration", "x").await.unwrap();
    bounced(&runtime, 1).await;
    assert_eq!(store.read("ghost").await.unwrap(), []);
    assert!(client.list_all_instances().await.unwrap().is_empty());
    runtime.shutdown(None).await;
}
