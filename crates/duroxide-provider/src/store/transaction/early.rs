//! Turns that run before the claims of their instances are committed (24.12, 24.13).
//!
//! A transaction that records the result of an activity usually makes an instance ready and claims it. If the turn runs while
//! the transaction is open, its round is committed with it: one commit instead of two, and the message between them is never
//! stored.
//!
//! Only claims that the engine marks ([`Claimed::early`](crate::store::Claimed::early)) are handed over this way: each of
//! their messages is the result of an activity's first attempt, whose lock is stored. If the turn kills the process, nothing
//! of the transaction is stored, that lock is lost, and the second attempt of the activity is counted, whose result is no
//! longer handed over early and begins with one attempt ([`count_early_turns`](crate::rules::Rules::count_early_turns)). So
//! a turn that kills its process runs no more often than `max_attempts` allows, and the activity before it runs twice.

use std::fmt::Debug;

use crate::{
    OrchestrationClaim,
    store::{Answer, Refusal, Submitted},
};

/// Applies the round of an early turn in the open transaction. `None`: the store failed, and with it the transaction.
pub type CommitEarly<'a> = dyn FnMut(&Submitted<'_>) -> Option<Result<Answer, Refusal>> + 'a;

/// Runs turns of a transaction that is still open.
///
/// If the transaction fails afterwards, none of the claims exists, and rounds that come later find no lock. It must then be
/// tried again with another nonce: the same claim made anew may hold other messages.
pub trait EarlyTurns: Debug {
    /// Hands claims to the fetches they were made for, waits a moment for their rounds, and applies those by `commit`. Claims
    /// that are left in `claims` are handed over after the commit.
    fn run(&self, claims: &mut Vec<EarlyClaims>, commit: &mut CommitEarly<'_>);

    /// Whether claims have been handed over.
    fn have_begun(&self) -> bool;
}

/// Claims that were made for one fetch.
#[derive(Debug)]
pub struct EarlyClaims {
    /// The index of the fetch in the batch.
    pub fetch: usize,
    /// The claims, never none.
    pub items: Vec<OrchestrationClaim>,
}
