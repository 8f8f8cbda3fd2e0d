//! Waiting in virtual time: notifications take no time, polls take exactly their pauses.

use std::{
    future::Future,
    pin::pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
    time::Duration,
};

use duroxide_core::{ErrorDetails, EventKind};
use duroxide_provider::{ProviderError, StatusSnapshot};
use tokio::time::Instant;

use super::*;
use crate::{
    OrchestrationStatus,
    env::{BoxFuture, Moment},
    fixture::fake_store::{completed, ended, running},
};

const MINUTE: Duration = Duration::from_secs(60);

fn output(status: &OrchestrationStatus) -> &str {
    match status {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{other:?}"),
    }
}

fn with_custom_status(status: &str, version: u64) -> StatusSnapshot {
    StatusSnapshot { custom_status: Some(status.to_owned()), custom_status_version: version, ..running() }
}

/// Waits for `order` in a task of its own, which has made its first read when this returns.
async fn begin_waiting(
    store: &Arc<FakeStore>,
) -> tokio::task::JoinHandle<Result<OrchestrationStatus, ClientError>> {
    let client = client_on(store);
    let waiting = tokio::spawn(async move { client.wait_for_orchestration("order", MINUTE).await });
    tokio::task::yield_now().await;
    assert_eq!(store.calls(), ["watch", "read_status"]);
    waiting
}

/// 20.2, B22
#[tokio::test(start_paused = true)]
async fn a_waiting_client_is_notified_and_reads_no_history() {
    let store = FakeStore::telling();
    store.set_status("order", running());
    let waiting = begin_waiting(&store).await;
    let begun = Instant::now();
    store.set_status("order", completed("apples"));
    assert_eq!(output(&waiting.await.unwrap().unwrap()), "apples");
    assert_eq!(begun.elapsed(), Duration::ZERO, "told, not polled");
    assert_eq!(store.calls(), ["watch", "read_status", "read_status"]);
}

/// 20.2: the notification of the end contains the status, so the client does not read.
#[tokio::test(start_paused = true)]
async fn a_client_with_a_reported_end_reads_no_more() {
    let store = FakeStore::telling();
    store.set_status("order", running());
    let waiting = begin_waiting(&store).await;
    let told = StatusSnapshot {
        custom_status: Some("all picked".to_owned()),
        custom_status_version: 7,
        ..completed("apples")
    };
    store.tell_status(told.clone());
    assert_eq!(waiting.await.unwrap().unwrap(), OrchestrationStatus::from(Some(told)));
    assert_eq!(store.calls(), ["watch", "read_status"]);
}

/// B22: while the store reports that the instance has not ended, the client reads only after the poll interval.
#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_an_end_does_not_read_before_there_can_be_one() {
    let store = FakeStore::telling();
    store.say_not_ended();
    let client = client_on(&store);
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { client.wait_for_orchestration("order", MINUTE).await })
    };
    tokio::task::yield_now().await;
    assert_eq!(store.calls(), ["watch"]);
    store.tell_status(completed("apples"));
    assert_eq!(output(&waiting.await.unwrap().unwrap()), "apples");
    assert_eq!(store.calls(), ["watch"]);

    // The last check reads.
    store.set_status_untold("order", completed("pears"));
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        assert_eq!(output(&client.wait_for_orchestration("order", timeout).await.unwrap()), "pears");
    }
}

/// 20.3: "has not ended" does not mean that the custom status is known.
#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_a_custom_status_reads_first_whatever_is_known_of_the_end() {
    let store = FakeStore::telling();
    store.say_not_ended();
    store.set_status_untold("order", with_custom_status("packing", 1));
    let begun = Instant::now();
    let status = client_on(&store).wait_for_status_change("order", 0, MINUTE, MINUTE).await.unwrap();
    assert_eq!((status.custom_status_version(), begun.elapsed()), (1, Duration::ZERO));
}

/// 20.2, 20.3: a reported status is checked like one that was read.
#[tokio::test(start_paused = true)]
async fn a_client_goes_on_waiting_after_another_change_than_the_awaited_one() {
    let store = FakeStore::telling();
    let waiting = begin_waiting(&store).await;
    store.tell_status(with_custom_status("packing", 1));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    store.set_status("order", completed("apples"));
    assert_eq!(output(&waiting.await.unwrap().unwrap()), "apples");
    assert_eq!(store.calls(), ["watch", "read_status", "read_status"]);
}

/// The end of an instance does not report its key-values.
#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_a_value_reads_it_after_any_notification() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    let waiting = tokio::spawn(async move { client.wait_for_kv_value("order", "count", MINUTE).await });
    tokio::task::yield_now().await;
    store.set_kv_untold("order", "count", "3");
    store.tell_status(completed("apples"));
    assert_eq!(waiting.await.unwrap().unwrap(), "3");
}

/// 20.2
#[tokio::test(start_paused = true)]
async fn a_change_between_the_first_read_and_the_wait_is_not_lost() {
    let store = FakeStore::telling();
    store.set_status_after_read("order", completed("apples"));
    let begun = Instant::now();
    client_on(&store).wait_for_orchestration("order", MINUTE).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// 20.2
#[tokio::test(start_paused = true)]
async fn a_lost_notification_costs_some_seconds() {
    let store = FakeStore::telling();
    let waiting = begin_waiting(&store).await;
    let begun = Instant::now();
    store.set_status_untold("order", completed("apples"));
    waiting.await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
}

/// 20.2: ten thousand clients that wait for seconds do not read meanwhile.
#[tokio::test(start_paused = true)]
async fn the_poll_behind_a_watch_begins_late_and_becomes_rare() {
    let store = FakeStore::telling();
    let waited = client_on(&store).wait_for_orchestration("order", 2 * MINUTE).await;
    assert!(matches!(waited, Err(ClientError::Timeout)));
    let reads = store.times_of("read_status");
    let at: Vec<_> = reads.iter().map(|read| (*read - reads[0]).as_secs()).collect();
    assert_eq!(at, [0, 5, 15, 35, 75, 115, 120]);
}

/// 20.2
#[tokio::test(start_paused = true)]
async fn a_store_without_watches_is_polled_quickly_at_first_and_then_every_100_ms() {
    let store = FakeStore::silent();
    let error =
        client_on(&store).wait_for_orchestration("order", Duration::from_millis(500)).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout));
    let reads = store.times_of("read_status");
    let pauses: Vec<_> = reads.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    assert_eq!(pauses, [5, 10, 20, 40, 80, 100, 100, 100, 45], "the last one ends at the deadline");
}

/// 20.2
#[tokio::test(start_paused = true)]
async fn an_instance_that_does_not_exist_yet_is_waited_for() {
    let store = FakeStore::telling();
    let waiting = begin_waiting(&store).await;
    store.set_status("order", running());
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    store.set_status("order", completed("apples"));
    assert_eq!(output(&waiting.await.unwrap().unwrap()), "apples");
}

#[tokio::test(start_paused = true)]
async fn without_any_time_a_wait_still_reads_once() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    let error = client.wait_for_orchestration("order", Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout));
    store.set_status("order", completed("apples"));
    assert_eq!(output(&client.wait_for_orchestration("order", Duration::ZERO).await.unwrap()), "apples");
}

#[tokio::test(start_paused = true)]
async fn one_may_wait_for_ever() {
    let store = FakeStore::telling();
    store.set_status("order", completed("apples"));
    client_on(&store).wait_for_orchestration("order", Duration::MAX).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_busy_store_does_not_end_a_wait_but_a_broken_one_does() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    store.set_status("order", completed("apples"));
    store.fail_status_read(ProviderError::retryable("read_status", "busy"));
    let begun = Instant::now();
    client.wait_for_orchestration("order", MINUTE).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(1), "what it would have said is asked soon");

    store.fail_status_read(ProviderError::permanent("read_status", "corrupt"));
    let error = client.wait_for_orchestration("order", MINUTE).await.unwrap_err();
    assert_eq!(error.to_string(), "read_status: corrupt");

    store.fail_status_read(ProviderError::retryable("read_status", "busy"));
    let error = client.wait_for_orchestration("order", Duration::ZERO).await.unwrap_err();
    assert_eq!(error.to_string(), "read_status: busy", "when time is over the cause is worth more");
}

/// 20.3
#[tokio::test(start_paused = true)]
async fn a_status_change_ends_a_wait_for_it() {
    let store = FakeStore::telling();
    store.set_status("order", with_custom_status("packing", 1));
    let client = client_on(&store);
    let wait = |seen| client.wait_for_status_change("order", seen, MINUTE, MINUTE);
    let status = wait(0).await.unwrap();
    assert_eq!(status, OrchestrationStatus::from(Some(with_custom_status("packing", 1))));

    store.set_status_after_read("order", with_custom_status("shipping", 2));
    let begun = Instant::now();
    assert_eq!(wait(1).await.unwrap().custom_status_version(), 2);
    assert_eq!(begun.elapsed(), Duration::ZERO);

    store.set_status("order", completed("apples"));
    assert!(wait(7).await.unwrap().is_terminal(), "the end ends it too");
}

/// 20.3
#[tokio::test(start_paused = true)]
async fn a_store_without_watches_is_polled_for_status_changes_at_the_callers_pace() {
    let store = FakeStore::silent();
    let interval = Duration::from_millis(30);
    let waited =
        client_on(&store).wait_for_status_change("order", 0, interval, Duration::from_millis(90)).await;
    assert!(matches!(waited, Err(ClientError::Timeout)));
    assert_eq!(store.times_of("read_status").len(), 4, "at 0, 30, 60 and 90 ms");
}

#[tokio::test(start_paused = true)]
async fn values_are_read_and_waited_for() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    assert_eq!(client.get_kv_value("order", "count").await.unwrap(), None);
    let error = client.wait_for_kv_value("order", "count", Duration::from_secs(3)).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout));

    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { client.wait_for_kv_value_typed::<u32>("order", "count", MINUTE).await })
    };
    tokio::task::yield_now().await;
    let begun = Instant::now();
    store.set_kv("order", "count", "3");
    assert_eq!(waiting.await.unwrap().unwrap(), 3);
    assert_eq!(begun.elapsed(), Duration::ZERO, "told, not polled");
    assert_eq!(client.get_kv_value_typed::<u32>("order", "count").await.unwrap(), Some(3));
    assert_eq!(client.get_kv_all_values("order").await.unwrap().len(), 1);
    let error = client.get_kv_value_typed::<Vec<u32>>("order", "count").await.unwrap_err();
    assert!(error.to_string().starts_with("Invalid input: KV deserialization error: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn typed_waits_decode_results_and_failures() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    store.set_status("order", completed("[1,2]"));
    assert_eq!(
        client.wait_for_orchestration_typed::<Vec<u32>>("order", MINUTE).await.unwrap(),
        Ok(vec![1, 2])
    );
    store.set_status("order", completed("bare text"));
    assert_eq!(
        client.wait_for_orchestration_typed::<String>("order", MINUTE).await.unwrap(),
        Ok("bare text".to_owned())
    );
    let error = client.wait_for_orchestration_typed::<u32>("order", MINUTE).await.unwrap_err();
    assert!(error.to_string().starts_with("Invalid input: decode failed: "), "{error}");
    let details = ErrorDetails::cancelled("enough");
    store.set_status("order", ended(EventKind::OrchestrationFailed { details }));
    assert_eq!(
        client.wait_for_orchestration_typed::<u32>("order", MINUTE).await.unwrap(),
        Err("canceled: enough".to_owned())
    );
}

/// 20.2, B22
#[tokio::test]
async fn a_status_call_is_one_status_read() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    store.set_status("order", running());
    assert_eq!(client.get_orchestration_status("order").await.unwrap(), Some(running()).into());
    assert_eq!(store.calls(), ["read_status"]);
}

/// 20.2a: the store is asked for a queued start only if the instance has no history.
#[tokio::test]
async fn a_status_call_asks_for_a_queued_start_if_nothing_else_is_known() {
    let store = FakeStore::telling();
    let client = client_on(&store);
    assert_eq!(client.get_orchestration_status("order").await.unwrap(), OrchestrationStatus::NotFound);
    assert_eq!(store.calls(), ["read_status", "read_status_or_pending"]);
    client.start_orchestration("order", "Order", "").await.unwrap();
    assert_eq!(client.get_orchestration_status("order").await.unwrap(), Some(running()).into());
}

/// The timer of a simulation: it jumps to the end of each sleep and records it.
#[derive(Default)]
struct VirtualTimer {
    slept: Mutex<Vec<Moment>>,
}

impl Timer for VirtualTimer {
    fn moment(&self) -> Moment {
        self.slept.lock().unwrap().last().copied().unwrap_or_default()
    }

    fn sleep_until(&self, deadline: Moment) -> BoxFuture {
        self.slept.lock().unwrap().push(deadline);
        Box::pin(async {})
    }
}

/// Polls a wait once outside of any async runtime, where using tokio's timer would panic.
fn poll_without_runtime<F: Future>(wait: F) -> F::Output {
    match pin!(wait).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the wait slept by another timer than the one it was given"),
    }
}

/// Architecture invariant 6: a simulation controls the time of its clients too.
#[test]
fn a_client_waits_by_the_timer_it_was_given() {
    let timer = Arc::new(VirtualTimer::default());
    let on = |store| client_on(&store).with_timer(Arc::clone(&timer) as Arc<dyn Timer>);
    let millis = |slept: &[Moment]| slept.iter().map(|at| at.since_begin().as_millis()).collect::<Vec<_>>();

    let timed_out = poll_without_runtime(
        on(FakeStore::silent()).wait_for_orchestration("order", Duration::from_millis(200)),
    );
    assert!(matches!(timed_out, Err(ClientError::Timeout)));
    assert_eq!(millis(&timer.slept.lock().unwrap()), [5, 15, 35, 75, 155, 200]);

    let timed_out = poll_without_runtime(
        on(FakeStore::telling()).wait_for_orchestration("order", Duration::from_millis(5_500)),
    );
    assert!(matches!(timed_out, Err(ClientError::Timeout)));
    assert_eq!(millis(&timer.slept.lock().unwrap()[6..]), [5_200, 5_700], "the poll behind the watch");
}
