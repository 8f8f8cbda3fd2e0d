//! Reads that show why an instance does not move. Validations of queued work are skipped for a provider that cannot read its
//! queues.

use std::time::Duration;

use duroxide_provider::{InstanceCount, SessionFetchConfig, SummaryRequest, TagFilter};

use super::next_millisecond;
use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, now_ms},
    message::{ORCHESTRATION, activity, raised, session_activity, start, timer_fired},
    round::{completion, failure},
};

/// The queued work of an instance: its messages, its lock, its activities (A17.3).
pub async fn test_queued_work_of_an_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("a").await;
    let Some(idle) = fixture.admin().read_queued_work("a").await.expect("read_queued_work must work") else {
        return;
    };
    assert_eq!((idle.messages_total, idle.activities_total, idle.ready_since_ms), (0, 0, None), "{idle:?}");
    fixture.send(raised("a", "go")).await;
    fixture.schedule(activity("a", 1, 2)).await;
    let read = async || {
        let work = fixture.admin().read_queued_work("a").await.expect("read_queued_work must work");
        work.expect("the instance has messages")
    };
    let work = read().await;
    assert_eq!((work.messages_total, work.messages.len(), work.attempts), (1, 1, 0), "{work:?}");
    assert!(work.messages[0].data.contains("ExternalRaised") && work.ready_since_ms.is_some(), "{work:?}");
    assert_eq!((work.activities_total, work.activities[0].activity_id), (1, 2), "{work:?}");
    assert_eq!(work.needs.name.as_deref(), Some(ORCHESTRATION));

    let claim = fixture.claim_instance("a").await;
    let held = read().await;
    assert!(held.lock.is_some() && held.ready_since_ms.is_none(), "a turn runs: {held:?}");
    assert_eq!(held.attempts, 1, "the attempt of the turn counts");
    fixture.abandon(&claim, Some(Duration::from_secs(60)), false).await;
    let hidden = read().await;
    assert!(hidden.lock.is_none() && hidden.ready_since_ms.is_none(), "nothing is visible: {hidden:?}");
    assert!(hidden.messages[0].visible_at_ms.is_some_and(|at| at > hidden.now_ms), "{hidden:?}");

    let running = fixture.work().await;
    assert!(read().await.activities[0].lock.is_some(), "a worker runs it");
    let renewed = fixture.provider.renew_work_item_lock(&running.token, Duration::from_secs(60)).await;
    renewed.expect("the lock must hold");
    let unknown = fixture.admin().read_queued_work("nobody").await.expect("read_queued_work must work");
    assert_eq!(unknown, None, "nothing is queued for an unknown id");
}

/// The queued work of an instance names the owners of its activities' sessions (A17.3, 13.1).
pub async fn test_queued_work_names_session_holders<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("a").await;
    let sessions = async || {
        let work = fixture.admin().read_queued_work("a").await.expect("read_queued_work must work");
        work.map(|work| work.sessions)
    };
    for id in [2, 3] {
        fixture.schedule(session_activity("a", id, "s")).await;
    }
    let Some(before) = sessions().await else { return };
    assert_eq!(before, [], "the session has no owner");
    let owner = SessionFetchConfig { owner_id: "w1".to_owned(), lock_timeout: Duration::from_secs(60) };
    let _held = fixture.work_with(Duration::from_secs(60), Some(&owner), &TagFilter::DefaultOnly).await;
    let held = sessions().await.unwrap_or_default();
    let [lease] = &held[..] else { panic!("one session is held: {held:?}") };
    assert_eq!((lease.session_id.as_str(), lease.owner.as_str()), ("s", "w1"));
    assert!(lease.until_ms > now_ms(), "{lease:?}");
}

/// Instances are counted by name, version and status, and by the times of their starts and ends (A17.3).
pub async fn test_summarize_instances<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let minute = 60_000;
    let request = SummaryRequest { from_ms: now_ms() - 10 * minute, bucket_ms: 20 * minute, buckets: 1 };
    for instance in ["first", "second", "third", "fourth"] {
        fixture.running(instance).await;
        next_millisecond().await;
    }
    fixture.turn("second", completion("second", 1, 2, "done")).await;
    fixture.turn("third", failure("third", 1, 2, "broken")).await;
    fixture.send(start("pending")).await;
    let summary = fixture.admin().summarize_instances(&request).await.expect("summarize_instances must work");
    let counts: Vec<(&str, u64)> =
        summary.counts.iter().map(|one| (one.status.as_str(), one.count)).collect();
    assert_eq!(counts, [("Completed", 1), ("Failed", 1), ("Running", 2)], "{summary:?}");
    let is_ours = |count: &InstanceCount| count.name == ORCHESTRATION && count.version == "1.0.0";
    assert!(summary.counts.iter().all(is_ours), "{summary:?}");
    let over_time = (summary.started, summary.completed, summary.failed);
    assert_eq!(over_time, (vec![4], vec![1], vec![1]), "all of it happened in the last minutes");
    assert_eq!(summary.oldest_running.expect("two run").0, "first");
    let counts_only = fixture.admin().summarize_instances(&SummaryRequest::default()).await;
    let counts_only = counts_only.expect("summarize_instances must work");
    assert_eq!((counts_only.counts.len(), counts_only.started.len()), (3, 0));
}

/// Queued work is counted by the capability that it needs (A17.3).
pub async fn test_summarize_queues<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    if fixture.admin().summarize_queues().await.is_err_and(|error| !error.is_retryable()) {
        return;
    }
    let due = now_ms() + 3_600_000;
    fixture.running("sleeper").await;
    fixture.send(timer_fired("sleeper", 2, due)).await;
    fixture.running("a").await;
    fixture.running("b").await;
    for instance in ["a", "b"] {
        fixture.send(raised(instance, "go")).await;
    }
    fixture.schedule(activity("a", 1, 2)).await;
    fixture.schedule(activity("a", 1, 3)).await;
    let _turn = fixture.claim().await;
    let _work = fixture.work().await;
    let summary = fixture.admin().summarize_queues().await.expect("summarize_queues must work");
    let [route] = &summary.orchestrations[..] else { panic!("one route: {summary:?}") };
    assert_eq!(
        (route.name.as_deref(), route.ready, route.locked),
        (Some(ORCHESTRATION), 1, 1),
        "{summary:?}"
    );
    assert!(route.oldest_ready_ms.is_some_and(|since| since <= summary.now_ms), "{summary:?}");
    let [lane] = &summary.activities[..] else { panic!("one lane: {summary:?}") };
    assert_eq!((lane.ready, lane.running, lane.delayed), (1, 1, 0), "{summary:?}");
    assert_eq!((summary.waiting_timers, summary.next_timer_ms), (1, Some(due)), "{summary:?}");
}
