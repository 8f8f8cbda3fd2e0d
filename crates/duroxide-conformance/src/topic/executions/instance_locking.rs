//! An instance lock has one holder, which owns only the messages that it locked.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::{
    factory::ProviderFactory,
    fixture::{Fixture, assert_refused},
    message::{activity_completed, raised, start},
    round::{completion, first_round, turn_round},
};

/// A locked instance is not fetched again, even if more messages arrive (I08).
pub async fn test_exclusive_instance_lock<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("locked")).await;
    let claim = fixture.claim_instance("locked").await;

    fixture.expect_no_claim("a locked instance must not be fetched").await;
    fixture.send(raised("locked", "more")).await;
    fixture.expect_no_claim("new messages must not open a locked instance").await;

    fixture.commit(&claim, first_round("locked")).await;
    let next = fixture.claim_instance("locked").await;
    assert_eq!(
        next.item.messages,
        [raised("locked", "more")],
        "the release must make waiting messages available"
    );
}

/// Every lock has its own token, also two successive locks of one instance (16.1).
pub async fn test_lock_token_uniqueness<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let mut tokens = BTreeSet::new();
    for n in 0..5 {
        fixture.send(start(&format!("token-{n}"))).await;
    }
    for _ in 0..5 {
        let claim = fixture.claim().await;
        assert!(tokens.insert(claim.token.clone()), "a token was given twice: {}", claim.token);
        fixture.abandon(&claim, None, false).await;
        let again = fixture.claim().await;
        assert!(tokens.insert(again.token.clone()), "a token was given twice: {}", again.token);
    }
}

/// Ack, abandon and renewal with an unknown token are permanent errors (16.1, I09).
pub async fn test_invalid_lock_token_rejection<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("safe")).await;
    let claim = fixture.claim_instance("safe").await;
    let provider = &fixture.provider;

    let text = "Invalid lock token";
    assert_refused(fixture.ack("bogus", first_round("safe")).await, text, "an ack under an unknown token");
    let abandoned = provider.abandon_orchestration_item("bogus", None, false).await;
    assert_refused(abandoned, text, "an abandon under an unknown token");
    let renewed = provider.renew_orchestration_item_lock("bogus", fixture.lease).await;
    crate::fixture::assert_permanent(renewed, "a renewal under an unknown token must fail");

    fixture.commit(&claim, first_round("safe")).await;
    assert_refused(fixture.ack(&claim.token, first_round("safe")).await, text, "an ack under a used token");
}

/// Concurrent fetches lock different instances (I08).
pub async fn test_concurrent_instance_fetching<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    for n in 0..10 {
        fixture.send(start(&format!("concurrent-{n}"))).await;
    }
    let claims = join_all((0..10).map(|_| fixture.claim())).await;
    let instances: BTreeSet<&str> = claims.iter().map(|claim| claim.item.instance.as_str()).collect();
    assert_eq!(
        instances.len(),
        10,
        "ten fetches must lock ten different instances, but locked {instances:?}"
    );
    fixture.expect_no_claim("all instances are locked").await;
}

/// Completions that arrive during a lock are delivered after its release, in order (I11, I15).
pub async fn test_completions_arriving_during_lock_blocked<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("busy")).await;
    let claim = fixture.claim_instance("busy").await;
    let arrived = [2, 3, 4].map(|id| activity_completed("busy", 1, id));
    for completion in &arrived {
        fixture.send(completion.clone()).await;
        fixture.expect_no_claim("completions must wait while the instance is locked").await;
    }

    fixture.commit(&claim, first_round("busy")).await;
    let next = fixture.claim_instance("busy").await;
    assert_eq!(
        next.item.messages, arrived,
        "all waiting completions must come in one batch, in arrival order"
    );
}

/// The lock of one instance does not affect another instance (I08).
pub async fn test_cross_instance_lock_isolation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.send(start("left")).await;
    fixture.send(start("right")).await;
    let left = fixture.claim_instance("left").await;
    let right = fixture.claim_instance("right").await;

    fixture.commit(&right, first_round("right")).await;
    fixture.send(raised("left", "more")).await;
    fixture.send(raised("right", "more")).await;
    let right = fixture.claim_instance("right").await;
    fixture.commit(&right, completion("right", 1, 2, "done")).await;
    fixture.expect_no_claim("the other instance is still locked").await;
    fixture.commit(&left, first_round("left")).await;
}

/// A batch contains the messages that were visible at the fetch; later messages belong to the next batch (11, I11).
pub async fn test_message_tagging_during_lock<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("tagged").await;
    fixture.send(raised("tagged", "a")).await;
    fixture.send(raised("tagged", "b")).await;
    let claim = fixture.claim_instance("tagged").await;
    fixture.send(raised("tagged", "c")).await;
    assert_eq!(
        claim.item.messages,
        [raised("tagged", "a"), raised("tagged", "b")],
        "a fetch must return all visible messages, in arrival order"
    );

    fixture.abandon(&claim, None, false).await;
    let claim = fixture.claim_instance("tagged").await;
    assert_eq!(
        claim.item.messages,
        [raised("tagged", "a"), raised("tagged", "b"), raised("tagged", "c")],
        "the next fetch must return the old messages and then the new one"
    );
}

/// An ack deletes the messages its token locked, and no others (A11, I11).
pub async fn test_ack_only_affects_locked_messages<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    fixture.running("partial").await;
    fixture.send(raised("partial", "before")).await;
    let claim = fixture.claim_instance("partial").await;
    fixture.send(raised("partial", "after")).await;
    fixture.commit(&claim, turn_round(1, vec![])).await;

    let next = fixture.claim_instance("partial").await;
    assert_eq!(
        next.item.messages,
        [raised("partial", "after")],
        "an ack must delete the fetched messages only: one that arrived since must stay"
    );
    assert_eq!(next.attempts, 1, "a message that was not fetched has no attempts");
    fixture.commit(&next, turn_round(1, vec![])).await;
    fixture.expect_no_claim("all messages are consumed").await;
}

/// Of many concurrent fetches for one instance exactly one locks it (I08).
pub async fn test_multi_threaded_lock_contention<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = std::sync::Arc::new(Fixture::new(factory).await);
    fixture.send(start("wanted")).await;
    let fetches = (0..10).map(|_| {
        let fixture = std::sync::Arc::clone(&fixture);
        tokio::spawn(async move { fixture.try_claim().await.is_some() })
    });
    let winners =
        join_all(fetches).await.into_iter().filter(|won| *won.as_ref().expect("no fetch panics")).count();
    assert_eq!(winners, 1, "exactly one of ten concurrent fetches must lock the instance");
}

/// Many workers on many instances process each of them exactly once (I08, I11).
pub async fn test_multi_threaded_no_duplicate_processing<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = std::sync::Arc::new(Fixture::new(factory).await);
    for n in 0..20 {
        fixture.send(start(&format!("shared-{n}"))).await;
    }
    let workers = (0..4).map(|_| {
        let fixture = std::sync::Arc::clone(&fixture);
        tokio::spawn(async move {
            let mut processed = Vec::new();
            while let Some(claim) = fixture.try_claim().await {
                fixture.commit(&claim, first_round(&claim.item.instance)).await;
                processed.push(claim.item.instance);
            }
            processed
        })
    });
    let processed: Vec<String> =
        join_all(workers).await.into_iter().flat_map(|worker| worker.expect("no worker panics")).collect();
    let distinct: BTreeSet<&String> = processed.iter().collect();
    assert_eq!(
        (processed.len(), distinct.len()),
        (20, 20),
        "each of 20 instances must be processed exactly once"
    );
}

/// When the lease of a lost holder ends, exactly one of the waiting workers takes the instance over (16.1, I08).
pub async fn test_multi_threaded_lock_expiration_recovery<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = std::sync::Arc::new(Fixture::new(factory).await);
    fixture.send(start("recovered")).await;
    let lost = fixture.claim_for(fixture.lease).await;

    let lost_times = lost.times;
    let waiters = (0..4).map(|_| {
        let fixture = std::sync::Arc::clone(&fixture);
        tokio::spawn(async move {
            lost_times.lease_ends(fixture.lease).await;
            fixture.try_claim().await
        })
    });
    let taken: Vec<_> =
        join_all(waiters).await.into_iter().filter_map(|waiter| waiter.expect("no waiter panics")).collect();
    assert_eq!(taken.len(), 1, "exactly one worker must take over an instance whose lease ended");
    assert_eq!(taken[0].attempts, 2, "a takeover counts as an attempt");
    lost.times.assert_kept_for(fixture.lease, taken[0].times);
    let late = fixture.ack(&lost.token, first_round("recovered")).await;
    assert_refused(late, "Invalid lock token", "an ack by the holder that lost its lock");
    fixture.commit(&taken[0], first_round("recovered")).await;
}
