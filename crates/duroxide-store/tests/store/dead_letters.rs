//! Logs and counters of messages that cannot be delivered.

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::WorkItem;
use duroxide_provider::{DeadLetterQueue, Provider, ProviderAdmin};

use crate::support::{counters::Counters, *};

/// B1, 16.11: a message for an instance that is never started becomes a dead letter, counted once. That needs no fetch.
#[test]
fn a_message_that_waited_too_long_for_its_instance_is_counted() {
    let counters = Counters::default();
    metrics::with_local_recorder(&counters, || {
        let Fixture { provider, mut store, clock, .. } = fixture();
        let cancel = WorkItem::CancelInstance { instance: "ghost".to_owned(), reason: "x".to_owned() };
        complete(&mut store, provider.enqueue_for_orchestrator(cancel, None)).unwrap();
        clock.advance(Duration::from_secs(61));
        store.run();
        let letters = complete(&mut store, provider.list_dead_letters(None)).unwrap();
        assert_eq!((letters.len(), &letters[0].queue), (1, &DeadLetterQueue::Orchestrator));
        assert_eq!(letters[0].reason, "no such instance");
    });
    let expected = "duroxide_dead_letters_total{queue=orchestrator,reason=no_instance}";
    assert_eq!(counters.values(), BTreeMap::from([(expected.to_owned(), 1)]));
}

/// 16.10: an activity that the runtime cannot run becomes a dead letter, is counted once, and can be retried.
#[test]
fn a_dead_letter_of_the_runtime_is_counted_and_can_be_retried() {
    let counters = Counters::default();
    metrics::with_local_recorder(&counters, || {
        let Fixture { provider, mut store, .. } = fixture();
        complete(&mut store, provider.enqueue_for_worker(activity("a", 2))).unwrap();
        let claim = complete(&mut store, fetch_activities(&provider, 1)).remove(0);
        let reason = "unexpected work item kind CancelInstance";
        complete(&mut store, provider.dead_letter_work_item(&claim.lock_token, reason)).unwrap();
        let letters = complete(&mut store, provider.list_dead_letters(None)).unwrap();
        assert_eq!(letters[0].reason, reason);
        complete(&mut store, provider.retry_dead_letter(&letters[0].id)).unwrap();
        assert_eq!(complete(&mut store, fetch_activities(&provider, 1)).len(), 1);
    });
    let expected = "duroxide_dead_letters_total{queue=worker,reason=unexpected_kind}";
    assert_eq!(counters.values(), BTreeMap::from([(expected.to_owned(), 1)]));
}
