//! Early turns in tests: a function decides the round of each turn.

use std::{cell::RefCell, fmt};

use duroxide_core::WorkItem;

use super::{Step, Subject, Turn, scenario::batch_fetch};
use crate::{
    OrchestrationClaim,
    store::{
        Batch, CommitEarly, EarlyClaims, EarlyTurns, InstanceFetch, Op, PreparedRound, StoreFailure,
        Submitted, WaitingFetch,
    },
};

/// Runs the turns of a transaction while it is open.
pub struct TurnsInTransaction<'a> {
    turn: &'a dyn Fn(&OrchestrationClaim) -> Option<Turn>,
    ran: RefCell<Vec<OrchestrationClaim>>,
}

impl<'a> TurnsInTransaction<'a> {
    /// Early turns that do this. `None`: the claim is left to the time after the commit.
    pub fn new(turn: &'a dyn Fn(&OrchestrationClaim) -> Option<Turn>) -> Self {
        Self { turn, ran: RefCell::default() }
    }

    /// The claims whose turns ran early.
    pub fn ran(self) -> Vec<OrchestrationClaim> {
        self.ran.into_inner()
    }
}

/// The commit of a turn.
pub(super) fn commit_op(claim: &OrchestrationClaim, turn: &Turn) -> Op {
    Op::CommitRound(Box::new(PreparedRound::new(&claim.lock_token, &turn.clone().round()).unwrap()))
}

impl EarlyTurns for TurnsInTransaction<'_> {
    fn run(&self, claims: &mut Vec<EarlyClaims>, commit: &mut CommitEarly<'_>) {
        for early in claims.iter_mut() {
            for claim in std::mem::take(&mut early.items) {
                let Some(turn) = (self.turn)(&claim) else {
                    early.items.push(claim);
                    continue;
                };
                let answer = commit(&Submitted::now(&commit_op(&claim, &turn)));
                answer.expect("the store works").unwrap();
                self.ran.borrow_mut().push(claim);
            }
        }
        claims.retain(|early| !early.items.is_empty());
    }

    fn have_begun(&self) -> bool {
        !self.ran.borrow().is_empty()
    }
}

impl fmt::Debug for TurnsInTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnsInTransaction").field("ran", &self.ran).finish_non_exhaustive()
    }
}

impl Subject {
    /// Acks an activity, claims its instance and, if nothing else is in the mailbox, commits a turn that records the completion:
    /// in one transaction if the turn may run early, and otherwise in two. The result is the same.
    pub(super) fn ack_and_turn(
        &mut self,
        step: &Step,
        completion: &WorkItem,
    ) -> Result<Result<String, String>, StoreFailure> {
        let WorkItem::ActivityCompleted { id, .. } = completion else { panic!("{completion:?}") };
        let turn = |claim: &OrchestrationClaim| {
            (claim.messages == [completion.clone()]).then(|| Turn::later(claim).completed(*id))
        };
        let (ack, _) = self.operation(step);
        let fetch = InstanceFetch { only: Some(completion.target_instance().to_owned()), ..batch_fetch(1) };
        let turns = TurnsInTransaction::new(&turn);
        let mut done = self.transact(Batch {
            operations: vec![Submitted::now(&ack)],
            instance_fetches: vec![WaitingFetch::new(&fetch)],
            turns: Some(&turns),
            ..Batch::default()
        })?;
        let mut ran = turns.ran().len();
        for claim in done.instances.pop().flatten().unwrap_or_default().items {
            let token = claim.lock_token.clone();
            let op = match turn(&claim) {
                Some(turn) => commit_op(&claim, &turn),
                None => Op::AbandonInstance { token, delay: None, ignore_attempt: true },
            };
            ran += usize::from(matches!(op, Op::CommitRound(_)));
            self.answer(&op, self.now)?.unwrap();
        }
        let answer = done.answers.pop().expect("every operation is answered");
        Ok(match answer {
            Ok(_) if ran > 0 => Ok("the turn ran".to_owned()),
            Ok(_) => Err("no turn ran".to_owned()),
            Err(refusal) => Err(refusal.to_string()),
        })
    }
}
