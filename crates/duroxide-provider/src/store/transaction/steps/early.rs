//! Runs early turns in an open transaction, and serves fetches again with the instances that their rounds make ready.

use super::{TransactionSteps, apply_one, caught};
use crate::{
    OrchestrationClaim,
    store::{
        Batch, BatchPart, Claimed, Done, EarlyClaims, EarlyTurns, FailureClass, Fault, FetchRequest,
        InstanceFetch,
    },
};

/// Runs the turns of claims that may run early, and claims the instances that their rounds make ready.
pub(super) fn run<S: TransactionSteps + ?Sized>(
    steps: &mut S,
    turns: &dyn EarlyTurns,
    batch: &Batch<'_>,
    done: &mut Done,
) -> Result<(), Fault> {
    let mut claims = take_early(&mut done.instances);
    if claims.is_empty() {
        return Ok(());
    }
    let mut handed_over = count_by_fetch(&claims, batch);
    let before = std::mem::take(&mut done.readies);
    let mut failure = None;
    turns.run(&mut claims, &mut |round| match apply_one(steps, round, done) {
        Ok(answer) => Some(answer),
        Err(broken) => {
            failure = Some(broken);
            None
        }
    });
    if let Some(failure) = failure {
        return Err(Fault::Broken { part: BatchPart::SomeOperation, failure });
    }
    let left = count_by_fetch(&claims, batch);
    handed_over.iter_mut().zip(left).for_each(|(count, left)| *count -= left);
    give_back(claims, &mut done.instances);
    let rounds_readied = done.readies;
    done.readies = before.or(rounds_readied);
    if rounds_readied.instances { serve_again(steps, batch, &handed_over, done) } else { Ok(()) }
}

/// Takes the claims out whose turns may run early.
fn take_early(served: &mut [Option<Claimed<OrchestrationClaim>>]) -> Vec<EarlyClaims> {
    let mut taken = Vec::new();
    for (fetch, claimed) in served.iter_mut().enumerate() {
        let Some(claimed) = claimed.as_mut().filter(|claimed| !claimed.early.is_empty()) else { continue };
        let early = std::mem::take(&mut claimed.early);
        let (mut items, mut others) = (Vec::with_capacity(early.len()), Vec::new());
        for (index, item) in std::mem::take(&mut claimed.items).into_iter().enumerate() {
            if early.binary_search(&index).is_ok() { items.push(item) } else { others.push(item) }
        }
        claimed.items = others;
        taken.push(EarlyClaims { fetch, items });
    }
    taken
}

/// Leaves claims that were not handed over to the time after the commit.
fn give_back(claims: Vec<EarlyClaims>, served: &mut [Option<Claimed<OrchestrationClaim>>]) {
    for EarlyClaims { fetch, items } in claims {
        if let Some(claimed) = served.get_mut(fetch) {
            claimed.get_or_insert_default().items.extend(items);
        }
    }
}

/// How many claims each fetch of the batch has.
fn count_by_fetch(claims: &[EarlyClaims], batch: &Batch<'_>) -> Vec<usize> {
    let of_fetch = |fetch| claims.iter().filter(move |claims| claims.fetch == fetch);
    let count = |fetch| of_fetch(fetch).map(|claims| claims.items.len()).sum();
    (0..batch.instance_fetches.len()).map(count).collect()
}

/// Claims for fetches that have not got all they want.
fn serve_again<S: TransactionSteps + ?Sized>(
    steps: &mut S,
    batch: &Batch<'_>,
    handed_over: &[usize],
    done: &mut Done,
) -> Result<(), Fault> {
    for (index, (fetch, served)) in batch.instance_fetches.iter().zip(&mut done.instances).enumerate() {
        let request = &*fetch.request;
        if request.only.is_some() {
            continue;
        }
        let served = served.get_or_insert_default();
        let taken = served.items.len() + handed_over.get(index).copied().unwrap_or_default();
        let wanted = request.wanted();
        if taken >= wanted.max {
            served.took_all = false;
            continue;
        }
        let rest = InstanceFetch {
            max: wanted.max - taken,
            free_slots: wanted.free_slots.saturating_sub(taken),
            ..request.clone()
        };
        let more = caught("claim", FailureClass::Permanent, || steps.claim_instances(&rest, batch.nonce))
            .map_err(|failure| Fault::Broken { part: BatchPart::InstanceFetch(index), failure })?;
        served.add(more);
    }
    Ok(())
}
