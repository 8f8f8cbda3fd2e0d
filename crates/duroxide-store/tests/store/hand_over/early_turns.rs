//! Turns that run before the transaction of their claims is committed, over the store's real thread.

use std::{sync::Arc, thread::sleep, time::Duration};

use duroxide_core::EventKind;
use duroxide_provider::{
    Demand, OrchestrationClaim, OrchestrationFetch, Provider, ProviderError, Round, TellOfDemand, Wanted,
    WorkClaim, store::FailureClass,
};
use duroxide_store::{StoreOptions, StoreProvider};
use tokio::task::JoinHandle;

use crate::support::*;

/// The time of a commit: the store waits for turns about as long.
const COMMIT: Duration = Duration::from_millis(5);
/// On a busy machine a turn may be late. Of this many in a row, one is in time.
const ATTEMPTS: usize = 100;

/// The demand of a dispatch loop: fetches without one are never answered early.
#[derive(Debug)]
struct DispatchLoop;

impl Demand for DispatchLoop {
    fn wanted(&self) -> Wanted {
        Wanted { max: 8, free_slots: 8 }
    }

    fn on_rise(&self, _tell: TellOfDemand) {}
}

type Fetched = Result<OrchestrationClaim, ProviderError>;

struct Served {
    provider: Arc<StoreProvider>,
    plan: Plan,
}

/// A store with slow commits.
fn served() -> Served {
    let plan = Plan::default();
    plan.during_commit(|| sleep(COMMIT));
    let options = StoreOptions { early_turns: true, shared: false, ..StoreOptions::default() };
    let store = StoreProvider::builder(scripted_engine(&plan)).with_options(options);
    Served { provider: Arc::new(store.start().unwrap()), plan }
}

impl Served {
    /// An instance that waits for its activity, which is claimed.
    async fn with_activity(&self, instance: &str) -> WorkClaim {
        self.provider.enqueue_for_orchestrator(start(instance), None).await.unwrap();
        let claim = fetch_instances(&self.provider, 1).await.remove(0);
        self.provider.commit_round(&claim.lock_token, first_round(instance)).await.unwrap();
        fetch_activities(&self.provider, 1).await.remove(0)
    }

    /// The fetch of a dispatch loop, which waits in the store.
    async fn waiting_fetch(&self) -> JoinHandle<Fetched> {
        self.waiting_fetch_with(Some(Arc::new(DispatchLoop))).await
    }

    async fn waiting_fetch_with(&self, demand: Option<Arc<dyn Demand>>) -> JoinHandle<Fetched> {
        let provider = Arc::clone(&self.provider);
        let mut fetch = Box::pin(async move {
            let request = OrchestrationFetch::new(LOCK, LONG).with_max(8, 8).with_demand(demand);
            provider.fetch_orchestration_items(&request).await.map(|mut claims| claims.remove(0))
        });
        hand_in(&mut fetch.as_mut());
        // An operation behind it: when that is answered, the fetch has found nothing and waits.
        self.provider.renew_session_lock(&[], LOCK, LOCK).await.unwrap();
        tokio::spawn(fetch)
    }

    fn ack(&self, work: &WorkClaim, instance: &str) -> JoinHandle<Result<(), ProviderError>> {
        let (provider, token) = (Arc::clone(&self.provider), work.lock_token.clone());
        let completion = completed(instance, 2);
        tokio::spawn(async move { provider.ack_work_item(&token, Some(completion)).await })
    }

    /// Hands the result of an activity in again, and ends its instance. Returns the token of the last turn.
    async fn end_after_failure(&self, work: &WorkClaim, instance: &str) -> String {
        self.ack(work, instance).await.unwrap().unwrap();
        let claim = fetch_instances(&self.provider, 1).await.remove(0);
        self.provider.commit_round(&claim.lock_token, end(instance)).await.unwrap();
        assert_eq!(self.provider.read(instance).await.unwrap().len(), 3);
        claim.lock_token
    }
}

fn end(instance: &str) -> Round {
    let mut round = last_round(instance);
    let completed = event(instance, 2, EventKind::ActivityCompleted { result: "done".to_owned() });
    round.history_delta.insert(0, completed);
    round.history_delta[1].event_id = 3;
    round
}

/// 24.13, I10: the result, the turn and the end are one commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_that_comes_in_time_is_part_of_the_commit_that_claimed_it() {
    let store = served();
    for attempt in 0..ATTEMPTS {
        let instance = format!("i{attempt}");
        let work = store.with_activity(&instance).await;
        let fetch = store.waiting_fetch().await;
        let before = store.plan.count(Point::Commit);
        let ack = store.ack(&work, &instance);
        let claim = fetch.await.unwrap().unwrap();
        store.provider.commit_round(&claim.lock_token, end(&instance)).await.unwrap();
        ack.await.unwrap().unwrap();
        assert_eq!(store.provider.read(&instance).await.unwrap().len(), 3);
        if store.plan.count(Point::Commit) == before + 1 {
            return;
        }
    }
    panic!("no round was in time");
}

/// 24.13: a turn that takes longer than the transaction waits is committed later: its claim is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_round_is_committed_by_a_later_transaction() {
    let store = served();
    let work = store.with_activity("a").await;
    let fetch = store.waiting_fetch().await;
    let ack = store.ack(&work, "a");
    let claim = fetch.await.unwrap().unwrap();
    ack.await.unwrap().unwrap();
    let before = store.plan.count(Point::Commit);
    store.provider.commit_round(&claim.lock_token, end("a")).await.unwrap();
    assert_eq!(store.plan.count(Point::Commit), before + 1);
    assert_eq!(store.provider.read("a").await.unwrap().len(), 3);
}

/// 24.13, I09, I10: if the transaction fails, its claims do not exist. Rounds of early turns are fenced, and the result that woke
/// the instance can be submitted again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_turn_of_a_failed_transaction_leaves_nothing_behind() {
    let store = served();
    let mut early_turns = 0;
    for attempt in 0..ATTEMPTS {
        let instance = format!("i{attempt}");
        let work = store.with_activity(&instance).await;
        let mut fetch = store.waiting_fetch().await;
        store.plan.fail_next(Point::Commit, FailureClass::Retryable);
        let mut ack = store.ack(&work, &instance);
        let early = tokio::select! { biased; claim = &mut fetch => Some(claim), _failed = &mut ack => None };
        let Some(early) = early else {
            // After a turn that was late, some transactions let none run early.
            fetch.abort();
            store.end_after_failure(&work, &instance).await;
            continue;
        };
        let token = early.unwrap().unwrap().lock_token;
        let refused = store.provider.commit_round(&token, end(&instance)).await.unwrap_err();
        ack.await.unwrap().unwrap_err();
        let refused = match refused {
            // The ack was part of the failed transaction, and its caller retries.
            error if error.is_retryable() => {
                store.provider.commit_round(&token, end(&instance)).await.unwrap_err()
            }
            error => error,
        };
        assert!(refused.is_lock_lost(), "{refused}");
        assert_eq!(store.provider.read(&instance).await.unwrap().len(), 1);

        assert_ne!(store.end_after_failure(&work, &instance).await, token);
        early_turns += 1;
        if early_turns == 5 {
            return;
        }
    }
    panic!("{early_turns} turns ran early");
}

/// 24.12: a caller that fetches without a demand may do anything with a claim, so the claim is stored first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_dispatch_loop_gets_claims_early() {
    let store = served();
    let work = store.with_activity("a").await;
    let fetch = store.waiting_fetch_with(None).await;
    let before = store.plan.count(Point::Commit);
    let ack = store.ack(&work, "a");
    fetch.await.unwrap().unwrap();
    assert_eq!(store.plan.count(Point::Commit), before + 1, "the claim is committed");
    ack.await.unwrap().unwrap();
}
