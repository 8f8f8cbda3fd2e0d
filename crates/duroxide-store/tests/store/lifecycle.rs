//! Threads: how a store starts, is bounded, and ends.

use std::{
    pin::pin,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use duroxide_core::WorkItem;
use duroxide_provider::{
    Provider, ProviderAdmin, ProviderError, TagFilter,
    memory::MemoryEngine,
    store::{MessageRow, Op, TransactionSteps},
};
use duroxide_store::{Idle, MemoryProvider, StoreBuilder, StoreOptions, StoreProvider};

use crate::support::*;

/// Dropping a provider joins its threads, inside a runtime too: the engine is dropped afterwards.
#[tokio::test]
async fn dropping_the_provider_ends_its_threads() {
    let plan = Plan::default();
    let provider = StoreProvider::builder(scripted_engine(&plan)).start().unwrap();
    provider.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    assert!(plan.is_shared());
    drop(provider);
    assert!(!plan.is_shared());
}

#[tokio::test]
async fn dropping_the_provider_ends_its_reader_threads() {
    let plan = Plan::default();
    let reader = scripted_engine(&plan);
    let provider =
        StoreProvider::builder(MemoryEngine::default()).with_reader(move || Ok(reader)).start().unwrap();
    provider.list_instances().await.unwrap();
    drop(provider);
    assert!(!plan.is_shared());
}

/// An engine need not be `Send`: it stays on the thread that opened it.
#[test]
fn an_engine_is_opened_on_the_thread_that_uses_it() {
    let (tell, told) = mpsc::channel();
    let plan = Plan::default();
    let engine = scripted_engine(&plan);
    let tell_reader = tell.clone();
    let opened_on = |tell: mpsc::Sender<_>| tell.send(thread::current().name().map(str::to_owned)).unwrap();
    let provider = StoreBuilder::opening(move || {
        opened_on(tell);
        Ok(engine)
    })
    .with_reader(move || {
        opened_on(tell_reader);
        Ok(MemoryEngine::default())
    })
    .start()
    .unwrap();
    // The store is open by now, the reader after the engine.
    let names: Vec<_> = told.try_iter().flatten().collect();
    assert_eq!(names, ["duroxide-store", "duroxide-read-0"]);
    drop(provider);
    assert!(!plan.is_shared());
}

#[test]
fn an_engine_that_cannot_be_opened_is_the_error_of_the_start() {
    let refused =
        || ProviderError { operation: "open".into(), message: "no such disk".into(), retryable: true };
    let builder = || StoreBuilder::opening(move || Err::<MemoryEngine, _>(refused()));
    assert_eq!(builder().start().unwrap_err(), refused());
    assert_eq!(builder().stepped().unwrap_err(), refused());
}

/// Threads that were started before it end with it.
#[test]
fn a_reader_that_cannot_be_opened_is_the_error_of_the_start() {
    let plan = Plan::default();
    let reader = scripted_engine(&plan);
    let error = StoreProvider::builder(scripted_engine(&plan))
        .with_reader(move || Ok(reader))
        .with_reader(|| Err::<MemoryEngine, _>(ProviderError::permanent("open", "no more files")))
        .start()
        .unwrap_err();
    assert_eq!(error, ProviderError::permanent("open", "no more files"));
    assert!(!plan.is_shared());
}

#[test]
fn a_panic_while_a_store_is_opened_is_an_error_of_the_start() {
    let panics = || -> Result<MemoryEngine, ProviderError> { panic!("the disk burns") };
    let error = StoreBuilder::opening(panics).start().unwrap_err();
    assert!(!error.retryable && error.message.contains("panicked"), "{error}");
}

#[test]
fn a_store_that_has_ended_answers_with_a_retryable_error() {
    let Fixture { provider, store, .. } = fixture();
    let mut fetch = pin!(provider.fetch_orchestration_item(LOCK, LONG, None));
    let mut enqueue = pin!(provider.enqueue_for_orchestrator(start("a"), None));
    let mut read = pin!(provider.list_instances());
    hand_in(&mut fetch);
    hand_in(&mut enqueue);
    hand_in(&mut read);
    drop(store);
    for error in [
        answer(&mut fetch).unwrap_err(),
        answer(&mut enqueue).unwrap_err(),
        answer(&mut read).unwrap_err(),
        answer(&mut pin!(provider.list_instances())).unwrap_err(),
    ] {
        assert!(error.is_retryable() && error.message.contains("closed"), "{error}");
    }
}

/// A claim that was not read is released even if the provider is dropped next.
#[test]
fn releases_are_carried_out_before_the_store_ends() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    {
        let mut unread = pin!(fetch_instances(&provider, 1));
        hand_in(&mut unread);
        store.run();
    }
    let before = plan.batches().len();
    drop(provider);
    assert_eq!(store.run(), Idle::Closed);
    assert_eq!(plan.batches()[before..], [1]);
}

/// The whole way over real threads: a waiting fetch is answered by the commit that makes its work.
#[tokio::test]
async fn a_memory_provider_hands_work_over_between_tasks() {
    let provider = Arc::new(MemoryProvider::new());
    let waiting = tokio::spawn({
        let provider = Arc::clone(&provider);
        async move { provider.fetch_orchestration_item(LOCK, LONG, None).await }
    });
    provider.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let (item, token, _) = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(item.instance, "a");

    provider.commit_round(&token, first_round("a")).await.unwrap();
    let (work, _, _) =
        provider.fetch_work_item(LOCK, LONG, None, &TagFilter::default()).await.unwrap().unwrap();
    assert!(matches!(work, WorkItem::ActivityExecute { id: 2, .. }));
    assert_eq!(provider.name(), "memory");
    assert_eq!(provider.as_management_capability().unwrap().list_instances().await.unwrap(), ["a"]);
}

/// Many tasks at once: every instance is claimed exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_instance_is_handed_out_once() {
    let provider = Arc::new(MemoryProvider::new());
    let fetches: Vec<_> = (0..200)
        .map(|_| {
            let provider = Arc::clone(&provider);
            tokio::spawn(async move { provider.fetch_orchestration_item(LOCK, LONG, None).await })
        })
        .collect();
    for n in 0..200 {
        provider.enqueue_for_orchestrator(start(&format!("i{n}")), None).await.unwrap();
    }
    let mut instances = Vec::new();
    for fetch in fetches {
        instances.push(fetch.await.unwrap().unwrap().unwrap().0.instance);
    }
    instances.sort();
    instances.dedup();
    assert_eq!(instances.len(), 200);
}

// ---- readers ------------------------------------------------------------------------------------------------

#[tokio::test]
async fn readers_answer_without_the_store_thread() {
    let mut seeded = MemoryEngine::default();
    seeded.rules().begin(duroxide_core::Timestamp::from_millis(1)).unwrap();
    let row = MessageRow::new(start("a"), None).unwrap();
    seeded.rules().apply(&Op::EnqueueMessage(row), duroxide_core::Timestamp::from_millis(1)).unwrap();
    seeded.rules().commit().unwrap();
    let also_seeded = seeded.clone();
    let plan = Plan::default();
    let provider = StoreProvider::builder(scripted_engine(&plan))
        .with_reader(move || Ok(seeded))
        .with_reader(move || Ok(also_seeded))
        .start()
        .unwrap();
    assert_eq!(provider.get_queue_depths().await.unwrap().orchestrator_queue, 1);
    assert_eq!(plan.count(Point::Read), 0);
}

#[tokio::test]
async fn a_reader_survives_a_panic() {
    let plan = Plan::default();
    plan.panic_next(Point::Read);
    let reader = scripted_engine(&plan);
    let provider =
        StoreProvider::builder(MemoryEngine::default()).with_reader(move || Ok(reader)).start().unwrap();
    let error = provider.list_instances().await.unwrap_err();
    assert!(error.message.contains("panicked"), "{error}");
    provider.list_instances().await.unwrap();
}

/// A burst of reads on the store thread does not hold commits up, nor the other way round.
#[test]
fn reads_and_transactions_take_turns_on_the_store_thread() {
    let Fixture { provider, mut store, plan, .. } = fixture();
    let mut reads: Vec<_> = (0..200).map(|_| Box::pin(provider.list_instances())).collect();
    for read in &mut reads {
        hand_in(&mut read.as_mut());
    }
    let mut enqueue = pin!(provider.enqueue_for_orchestrator(start("a"), None));
    hand_in(&mut enqueue);
    store.run();
    answer(&mut enqueue).unwrap();
    for read in &mut reads {
        answer(&mut read.as_mut()).unwrap();
    }
    assert!(plan.reads_before_first_commit() < 200);
}

// ---- bounds -------------------------------------------------------------------------------------------------

/// I20, D5: client enqueues wait outside once the queue is full.
#[test]
fn client_enqueues_wait_outside_a_full_queue() {
    let Fixture { provider, mut store, plan, .. } =
        fixture_with(StoreOptions { enqueue_ops_max: 2, ..StoreOptions::default() });
    let mut calls: Vec<_> = ["a", "b", "c"]
        .map(|instance| Box::pin(provider.enqueue_for_orchestrator(start(instance), None)))
        .into_iter()
        .collect();
    for call in &mut calls {
        hand_in(&mut call.as_mut());
    }
    store.run();
    answer(&mut calls[0].as_mut()).unwrap();
    answer(&mut calls[1].as_mut()).unwrap();
    hand_in(&mut calls[2].as_mut());
    store.run();
    answer(&mut calls[2].as_mut()).unwrap();
    assert_eq!(plan.batches(), [2, 1]);
}

/// An enqueue larger than the whole queue is let in alone, not refused and not stuck.
#[test]
fn an_enqueue_above_the_byte_bound_goes_alone() {
    let Fixture { provider, mut store, plan, .. } =
        fixture_with(StoreOptions { enqueue_bytes_max: 10, ..StoreOptions::default() });
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    complete(&mut store, provider.enqueue_for_orchestrator(start("b"), None)).unwrap();
    assert_eq!(plan.batches(), [1, 1]);
}

/// I20: enqueues that fill the queue to the byte are let in together; with one byte less of room, the second waits.
#[test]
fn client_enqueues_fill_the_queue_to_the_byte() {
    let item = |instance: &str| start(instance);
    let bytes = |instance: &str| serde_json::to_string(&item(instance)).unwrap().len();
    for (room, batches) in [(bytes("a") + bytes("b"), vec![2]), (bytes("a") + bytes("b") - 1, vec![1, 1])] {
        let Fixture { provider, mut store, plan, .. } =
            fixture_with(StoreOptions { enqueue_bytes_max: room, ..StoreOptions::default() });
        let mut first = pin!(provider.enqueue_for_orchestrator(item("a"), None));
        let mut second = pin!(provider.enqueue_for_orchestrator(item("b"), None));
        hand_in(&mut first);
        hand_in(&mut second);
        store.run();
        answer(&mut first).unwrap();
        complete(&mut store, second).unwrap();
        assert_eq!(plan.batches(), batches, "{room}");
    }
}

/// A full queue of client enqueues does not hold work in progress up.
#[test]
fn a_full_client_queue_does_not_hold_acks_up() {
    let mut f = fixture_with(StoreOptions { enqueue_ops_max: 1, ..StoreOptions::default() });
    let claim = claim_new(&mut f, "a");
    let Fixture { provider, mut store, .. } = f;
    let mut first = pin!(provider.enqueue_for_orchestrator(start("b"), None));
    let mut second = pin!(provider.enqueue_for_orchestrator(start("c"), None));
    let mut commit = pin!(provider.commit_round(&claim.lock_token, first_round("a")));
    hand_in(&mut first);
    hand_in(&mut second);
    hand_in(&mut commit);
    store.run();
    answer(&mut commit).unwrap();
    assert!(poll(&mut second).is_pending());
}

#[test]
fn fetches_with_an_endless_timeout_are_fine() {
    let Fixture { provider, mut store, .. } = fixture();
    let mut fetch = pin!(provider.fetch_orchestration_item(LOCK, Duration::MAX, None));
    hand_in(&mut fetch);
    store.run();
    complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap();
    hand_in(&mut fetch);
    store.run();
    assert!(answer(&mut fetch).unwrap().is_some());
}
