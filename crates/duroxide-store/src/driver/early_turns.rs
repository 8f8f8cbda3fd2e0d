//! Hands claims over while their transaction is open, and commits the rounds of their turns in it.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{HashSet, VecDeque},
    fmt,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use duroxide_provider::store::{Answer, CommitEarly, EarlyClaims, EarlyTurns, Op, Refusal, Submitted};

use crate::{
    job::Job,
    machine::{FetchNumbers, Machine, Wait},
    submit::{Delivery, Request, Submitter},
};

/// The early turns of one transaction.
pub(super) struct OpenTransaction<'a> {
    wait: Wait,
    fetches: &'a FetchNumbers,
    inbox: &'a mpsc::Receiver<Request>,
    submitter: &'a Arc<Submitter>,
    state: RefCell<State<'a>>,
}

struct State<'a> {
    machine: &'a mut Machine,
    /// The tokens of claims whose rounds have not arrived.
    awaited: HashSet<String>,
    result: EarlyRounds,
}

/// The results of early turns.
#[derive(Debug, Default)]
pub(super) struct EarlyRounds {
    /// The rounds that are part of the transaction, with their answers if the store did not fail.
    pub(super) joined: Vec<(Job, Option<Result<Answer, Refusal>>)>,
    /// How many claims were handed over.
    pub(super) handed_over: usize,
    /// How long the transaction waited.
    pub(super) waited: Duration,
    /// Requests that came in meanwhile and are not for the machine.
    pub(super) others: VecDeque<Request>,
}

impl<'a> OpenTransaction<'a> {
    pub(super) fn new(
        wait: Wait,
        fetches: &'a FetchNumbers,
        machine: &'a mut Machine,
        inbox: &'a mpsc::Receiver<Request>,
        submitter: &'a Arc<Submitter>,
    ) -> Self {
        let state = RefCell::new(State { machine, awaited: HashSet::new(), result: EarlyRounds::default() });
        Self { wait, fetches, inbox, submitter, state }
    }

    pub(super) fn finish(self) -> EarlyRounds {
        self.state.into_inner().result
    }
}

impl EarlyTurns for OpenTransaction<'_> {
    fn run(&self, claims: &mut Vec<EarlyClaims>, commit: &mut CommitEarly<'_>) {
        let began = Instant::now();
        let state = &mut *self.state.borrow_mut();
        state.hand_over(claims, self.fetches, self.submitter);
        // Checks the time before each request, because requests may come in faster than they are accepted.
        while !state.awaited.is_empty()
            && let Some(left) = self.wait.max.checked_sub(began.elapsed())
            && let Ok(request) = self.inbox.recv_timeout(left.min(self.wait.gap))
            && state.take(request, commit)
        {}
        state.result.waited = began.elapsed();
    }

    fn have_begun(&self) -> bool {
        self.state.borrow().result.handed_over > 0
    }
}

impl State<'_> {
    /// Delivers claims to the fetches that wait for them; the others stay in `claims`.
    fn hand_over(
        &mut self,
        claims: &mut Vec<EarlyClaims>,
        fetches: &FetchNumbers,
        submitter: &Arc<Submitter>,
    ) {
        for EarlyClaims { fetch, items } in std::mem::take(claims) {
            let tokens: Vec<String> = items.iter().map(|claim| claim.lock_token.clone()).collect();
            let deliver = |items| Delivery::new(items, Arc::clone(submitter));
            let left = match fetches.at(fetch) {
                Some(number) => self.machine.instances.hand_over_early(number, items, deliver),
                None => Some(items),
            };
            match left {
                Some(items) => claims.push(EarlyClaims { fetch, items }),
                None => {
                    self.result.handed_over += tokens.len();
                    self.awaited.extend(tokens);
                }
            }
        }
    }

    /// Applies an awaited round, and hands any other request to the machine. Returns whether the store works.
    fn take(&mut self, request: Request, commit: &mut CommitEarly<'_>) -> bool {
        if let Request::NodeGone(_) = request {
            self.result.others.push_back(request);
            return true;
        }
        let Some(job) = self.awaited_job(request) else { return true };
        let answer = commit(&Submitted { op: Cow::Borrowed(job.op()), waited: Duration::ZERO });
        let works = answer.is_some();
        self.result.joined.push((job, answer));
        works
    }

    /// The request if it is an awaited round; hands any other request to the machine.
    fn awaited_job(&mut self, request: Request) -> Option<Job> {
        if let Request::Job(job) = &request
            && self.is_awaited(job)
            && let Request::Job(job) = request
        {
            return Some(job);
        }
        self.machine.accept(request);
        None
    }

    fn is_awaited(&mut self, job: &Job) -> bool {
        let Op::CommitRound(round) = job.op() else { return false };
        self.awaited.remove(&round.token)
    }
}

impl fmt::Debug for OpenTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTransaction").field("wait", &self.wait).finish_non_exhaustive()
    }
}
