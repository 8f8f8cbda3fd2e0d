//! A cached execution is used only if it matches the stored history exactly (2.14).

use std::{collections::BTreeMap, sync::Arc};

use duroxide_core::{
    Clock, FnOrchestration, RuntimeLimits, Timestamp, WorkItem,
    engine::{Seed, Setup},
};
use duroxide_provider::{LoadedExecution, StorePosition};

use super::*;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(12)
    }
}

fn seed(input: &str) -> Seed {
    Seed {
        instance: "i".into(),
        execution_id: 1,
        name: "wait".into(),
        version: "1.0.0".into(),
        input: input.into(),
        parent: None,
        carried: vec![],
        custom_status: None,
    }
}

fn cached(position: HistoryPosition) -> Box<CachedExecution> {
    cached_with("in", position)
}

fn cached_with(input: &str, position: HistoryPosition) -> Box<CachedExecution> {
    let setup = Setup {
        handler: Arc::new(FnOrchestration(|_, input| async move { Ok(input) })),
        clock: Arc::new(Noon),
        limits: RuntimeLimits::default(),
        worker_id: None,
        kv: BTreeMap::new(),
    };
    Box::new(CachedExecution {
        trace: None,
        execution: Execution::start(seed(input), setup),
        execution_id: 1,
        name: "wait".into(),
        version: "1.0.0".into(),
        turns: 1,
        unreadable_pin: None,
        replayable: true,
        position,
        steps: crate::dispatch::RunningSteps::default(),
    })
}

fn at(incarnation: u64, last_event_id: u64) -> HistoryPosition {
    HistoryPosition::Position { incarnation, last_event_id }
}

fn claim(
    execution_id: u64,
    position: Option<StorePosition>,
    history: Option<Vec<Event>>,
) -> OrchestrationClaim {
    OrchestrationClaim {
        instance: "i".into(),
        orchestration_name: "wait".into(),
        version: "1.0.0".into(),
        execution_id,
        messages: Vec::<WorkItem>::new(),
        lock_token: "t".into(),
        attempt_count: 1,
        losses: None,
        position,
        loaded: history.map(|history| LoadedExecution { history, ..LoadedExecution::default() }),
    }
}

fn position(incarnation: u64, last_event_id: u64) -> Option<StorePosition> {
    Some(StorePosition { incarnation, last_event_id, turns: 1 })
}

fn is_live(position: HistoryPosition, claim: &OrchestrationClaim) -> bool {
    let cache = ExecutionCache::new(10, usize::MAX);
    assert!(cache.put("i", cached(position)).is_empty());
    let found = cache.take(claim);
    assert!(matches!(cache.take(claim), Lookup::Absent), "it is out while its turn runs");
    matches!(found, Lookup::Live(_))
}

#[test]
fn incarnation_execution_and_last_event_must_all_agree() {
    assert!(is_live(at(7, 3), &claim(1, position(7, 3), None)));
    assert!(!is_live(at(7, 3), &claim(1, position(8, 3), None)), "deleted and started again");
    assert!(!is_live(at(7, 3), &claim(2, position(7, 3), None)), "continued as new");
    assert!(!is_live(at(7, 3), &claim(1, position(7, 4), None)), "another node went on");
}

#[test]
fn a_plain_store_is_compared_by_its_first_and_last_event() {
    let history = seed("in").into_events(Noon.now());
    let other = seed("other").into_events(Noon.now());
    let position = HistoryPosition::of(&claim(1, None, None), &history);
    assert!(is_live(position.clone(), &claim(1, None, Some(history.clone()))));
    assert!(!is_live(position.clone(), &claim(1, None, Some(other))));
    let damaged =
        LoadedExecution { history, history_error: Some("nonsense".into()), ..LoadedExecution::default() };
    assert!(!is_live(position, &OrchestrationClaim { loaded: Some(damaged), ..claim(1, None, None) }));
}

#[test]
fn a_new_execution_stands_behind_its_first_round() {
    let mut live = cached(HistoryPosition::Empty);
    let delta = seed("in").into_events(Noon.now());
    live.advance(&delta);
    assert_eq!(live.position, HistoryPosition::Ends(Box::new((delta[0].clone(), delta[0].clone()))));
    assert_eq!(live.turns, 2);
}

/// 8.1: a round that ends an execution starts the next one, whose position follows from the round.
#[test]
fn a_successor_stands_behind_its_seed() {
    let delta = seed("next").into_events(Noon.now());
    assert_eq!(at(7, 5).of_successor(&delta), at(7, 1));
    let ends = HistoryPosition::Ends(Box::new((delta[0].clone(), delta[0].clone())));
    let other = seed("in").into_events(Noon.now());
    assert_eq!(HistoryPosition::of(&claim(1, None, None), &other).of_successor(&delta), ends);
}

#[test]
fn the_least_recently_used_goes_first() {
    let cache = ExecutionCache::new(2, usize::MAX);
    assert!(cache.put("a", cached(at(1, 1))).is_empty());
    assert!(cache.put("b", cached(at(2, 1))).is_empty());
    assert!(cache.put("a", cached(at(1, 2))).len() == 1, "the older one of the same instance");
    let gone = cache.put("c", cached(at(3, 1)));
    assert_eq!(gone.iter().map(|gone| &gone.position).collect::<Vec<_>>(), [&at(2, 1)]);
    assert_eq!(cache.clear().len(), 2);
}

#[test]
fn size_zero_keeps_nothing() {
    let cache = ExecutionCache::new(0, usize::MAX);
    assert_eq!(cache.put("a", cached(at(1, 1))).len(), 1);
    assert!(cache.clear().is_empty());
}

/// S3.16, 17.4: an execution that this node could not replay is not cached either.
#[test]
fn an_execution_that_could_not_be_replayed_is_not_kept() {
    let cache = ExecutionCache::new(10, usize::MAX);
    let mut own = cached(at(1, 2));
    own.replayable = false;
    assert_eq!(cache.put("i", own).len(), 1);
    assert!(cache.clear().is_empty());
}

/// The cached instances, oldest use first.
fn instances(cache: &ExecutionCache) -> Vec<String> {
    lock(&cache.entries).by_use.values().map(ToString::to_string).collect()
}

/// At the bound everything stays; one byte more evicts the least recently used.
#[test]
fn the_byte_bound_holds_at_the_limit_and_one_beyond() {
    let input = "x".repeat(1 << 20);
    let each = cached_with(&input, at(1, 1)).bytes();
    assert!(each >= 1 << 20, "the input counts");
    let fill = |bytes_max| {
        let cache = ExecutionCache::new(10, bytes_max);
        for instance in ["a", "b"] {
            assert!(cache.put(instance, cached_with(&input, at(1, 1))).is_empty());
        }
        cache
    };
    let full = fill(3 * each);
    assert!(full.put("c", cached_with(&input, at(1, 1))).is_empty());
    assert_eq!(instances(&full), ["a", "b", "c"]);
    assert_eq!(lock(&full.entries).bytes, 3 * each);

    let over = fill(3 * each - 1);
    assert_eq!(over.put("c", cached_with(&input, at(1, 1))).len(), 1);
    assert_eq!(instances(&over), ["b", "c"]);
    assert_eq!(lock(&over.entries).bytes, 2 * each);
    assert_eq!(over.clear().len(), 2);
    assert_eq!(lock(&over.entries).bytes, 0);
}

#[test]
fn an_execution_above_the_whole_bound_is_not_kept_and_evicts_no_other() {
    let small = cached(at(1, 1));
    let large = cached_with(&"x".repeat(1 << 20), at(2, 1));
    let cache = ExecutionCache::new(10, large.bytes() - 1);
    assert!(cache.put("small", small).is_empty());
    assert_eq!(cache.put("large", large).len(), 1);
    assert_eq!(instances(&cache), ["small"]);
}

/// For a store that only returns histories, the cache keeps the first and last event.
#[test]
fn events_kept_for_comparison_count() {
    let events = seed(&"x".repeat(1 << 20)).into_events(Noon.now());
    let ends = HistoryPosition::of(&claim(1, None, None), &events);
    assert!(cached(ends).bytes() > cached(at(1, 1)).bytes() + (2 << 20));
}
