//! The machine as a value: requests in, steps out, no engine and no thread.

use std::sync::{Arc, Mutex};

use duroxide_provider::{
    Demand, OrchestrationClaim, TellOfDemand, Wanted, WorkClaim,
    store::{
        Answer, ApplyError, Batch, Claimed, DeadLetterNote, FailureClass, FetchRequest, Op, Readies,
        StoreFailure, StoredNode, TransactionSteps,
    },
};
use tokio::sync::oneshot;

use super::*;
use crate::submit::SubmittedFetch;

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A machine without due rows.
fn idle_machine() -> Machine {
    let mut machine = Machine::new(StoreOptions { shared: false, ..StoreOptions::default() });
    assert_eq!(machine.next_step(at(0)), Step::AskNextWake);
    machine.learned_next_wake(None);
    machine
}

fn ack() -> Request {
    let op = Op::AckActivity { token: "1-1".to_owned(), completion: None };
    Request::Job(Job::unattended(op, at(0)))
}

fn request(max: usize, free_slots: usize) -> InstanceFetch {
    InstanceFetch {
        lock_timeout: SECOND,
        versions: None,
        handlers: None,
        max,
        free_slots,
        demand: None,
        whole_mailbox: false,
        node: None,
        only: None,
    }
}

type Reply = oneshot::Receiver<Result<crate::submit::Delivery<InstanceFetch>, StoreFailure>>;

fn fetch(machine: &mut Machine, request: InstanceFetch, deadline: Timestamp) -> Reply {
    let (reply, delivery) = oneshot::channel();
    machine.accept(Request::FetchInstances(Box::new(SubmittedFetch { request, deadline, reply })));
    delivery
}

/// A caller that changes its mind.
#[derive(Debug)]
struct Changing(Mutex<Wanted>);

impl Demand for Changing {
    fn wanted(&self) -> Wanted {
        *self.0.lock().unwrap()
    }

    fn on_rise(&self, _tell: TellOfDemand) {}
}

impl Changing {
    fn fetch(self: &Arc<Self>, machine: &mut Machine) -> Reply {
        let Wanted { max, free_slots } = self.wanted();
        let demand = Some(Arc::clone(self) as Arc<dyn Demand>);
        fetch(machine, InstanceFetch { demand, ..request(max, free_slots) }, at(60_000))
    }

    fn wants(&self, max: usize, free_slots: usize) {
        *self.0.lock().unwrap() = Wanted { max, free_slots };
    }
}

/// A store that holds nothing.
struct Empty {
    /// How many claims were made.
    claims: usize,
    /// Whether it reports that no ready item is left.
    took_all: bool,
}

impl TransactionSteps for Empty {
    fn begin(&mut self, _now: Timestamp) -> Result<(), StoreFailure> {
        Ok(())
    }

    fn apply(&mut self, _op: &Op, _handed_in: Timestamp) -> Result<Answer, ApplyError> {
        Ok(Answer::Done)
    }

    fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        Ok(Vec::new())
    }

    fn shorten_leases(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }

    fn move_leases(&mut self, _by: Duration) -> Result<(), StoreFailure> {
        Ok(())
    }

    fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure> {
        Ok(Vec::new())
    }

    fn claim_instances(
        &mut self,
        _order: &InstanceFetch,
        _nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        self.claims += 1;
        Ok(Claimed { took_all: self.took_all, ..Claimed::default() })
    }

    fn claim_activities(
        &mut self,
        _order: &ActivityFetch,
        _nonce: u128,
    ) -> Result<Claimed<WorkClaim>, StoreFailure> {
        Ok(Claimed::default())
    }

    fn commit(&mut self) -> Result<(), StoreFailure> {
        Ok(())
    }

    fn rollback(&mut self) {}
}

/// Carries a transaction out in which every claim comes back empty. Returns how many claims were made.
fn transact_in_vain(machine: &mut Machine, refreshed: bool) -> usize {
    transact_on(machine, refreshed, Empty { claims: 0, took_all: false })
}

fn transact_on(machine: &mut Machine, refreshed: bool, mut store: Empty) -> usize {
    let _ = machine.take_batch();
    machine.ask_demands();
    let (instance_fetches, numbers) = machine.instances.requests(|_| None, |_| Prospect::Some);
    let instance_fetches = Asked::waiting(&instance_fetches);
    let batch = Batch { promote: refreshed, instance_fetches, ..Batch::default() };
    let done = store.transact_in_steps(&batch).unwrap();
    machine.committed(None, false, NextWake::Unknown);
    let served = numbers.served(done.instances, done.readies.instances);
    machine.instances.deliver(served, |_| panic!("nothing was claimed"));
    machine.learned_next_wake(None);
    store.claims
}

#[test]
fn an_idle_machine_sleeps_until_a_request() {
    assert_eq!(idle_machine().next_step(at(5)), Step::Sleep(None));
}

#[test]
fn an_operation_is_taken_at_once() {
    let mut machine = idle_machine();
    machine.accept(ack());
    assert_eq!(machine.next_step(at(0)), Step::Transact);
    assert_eq!(machine.take_batch().len(), 1);
    machine.committed(None, false, NextWake::Unknown);
    assert_eq!(machine.next_step(at(0)), Step::AskNextWake);
}

/// The results of claims of one commit arrive one by one: the first result waits for some others, and not for long.
#[test]
fn the_first_result_after_many_claims_waits_for_others() {
    let mut machine = idle_machine();
    machine.observe(at(10), SECOND, false);
    machine.gathering.expect_results(0, 100, Duration::from_millis(8), at(10));
    machine.accept(ack());
    machine.observe(at(11), SECOND, false);
    assert_eq!(machine.next_step(at(11)), Step::Gather(at(12)));
    machine.accept(ack());
    machine.observe(at(12), SECOND, false);
    assert_eq!(machine.next_step(at(12)), Step::Gather(at(13)), "another one came");
    assert_eq!(machine.next_step(at(13)), Step::Transact);
    (0..23).for_each(|_| machine.accept(ack()));
    assert_eq!(machine.next_step(at(12)), Step::Transact, "enough have come");
}

/// Without it, items that the operations make ready would need another transaction, or go to another process.
#[test]
fn operations_wait_for_the_fetch_that_a_dispatch_loop_is_about_to_make() {
    let mut machine = idle_machine();
    let caller = Arc::new(Changing(Mutex::new(Wanted { max: 8, free_slots: 8 })));
    let demand = Some(Arc::clone(&caller) as Arc<dyn Demand>);
    let answer = |machine: &mut Machine, demand| {
        machine.observe(at(10), SECOND, false);
        machine.gathering.expect_results(0, 8, Duration::from_millis(8), at(10));
        machine.instances.await_fetch_after(&InstanceFetch { demand, ..request(8, 8) });
        (0..8).for_each(|_| machine.accept(ack()));
    };
    answer(&mut machine, None);
    assert_eq!(machine.next_step(at(10)), Step::Transact, "no dispatch loop");
    answer(&mut machine, demand);
    assert_eq!(machine.next_step(at(10)), Step::Gather(at(11)));
    assert_eq!(machine.next_step(at(11)), Step::Transact, "it does not come");
    let _reply = caller.fetch(&mut machine);
    assert_eq!(machine.next_step(at(10)), Step::Transact, "it has come");
}

#[test]
fn a_fetch_is_tried_once_then_waits_for_its_deadline() {
    let mut machine = idle_machine();
    let mut reply = fetch(&mut machine, request(1, 1), at(500));
    assert_eq!(machine.next_step(at(0)), Step::Transact);
    assert_eq!(transact_in_vain(&mut machine, false), 1);
    assert_eq!(machine.next_step(at(499)), Step::Sleep(Some(at(500))));
    assert_eq!(machine.next_step(at(500)), Step::Expire);
    machine.expire(at(500));
    assert!(reply.try_recv().unwrap().unwrap().take().is_empty());
    assert_eq!(machine.next_step(at(500)), Step::Sleep(None));
}

/// Even a fetch whose deadline has passed is tried before it is answered without items.
#[test]
fn no_fetch_is_answered_before_the_store_was_asked() {
    let mut machine = idle_machine();
    let _reply = fetch(&mut machine, request(1, 1), at(0));
    assert_eq!(machine.next_step(at(10)), Step::Transact);
}

#[test]
fn one_claim_in_vain_speaks_for_all_fetches_with_the_same_filter() {
    let mut machine = idle_machine();
    let _replies: Vec<_> = (0..5).map(|_| fetch(&mut machine, request(1, 1), at(500))).collect();
    assert_eq!(transact_in_vain(&mut machine, false), 1);
    assert_eq!(machine.next_step(at(1)), Step::Sleep(Some(at(500))));

    machine.made_ready(Readies { instances: true, activities: false });
    assert_eq!(machine.next_step(at(1)), Step::Transact);
}

/// A fetch without free slots stops at rows that were attempted before; other fetches may take them.
#[test]
fn a_fetch_without_free_slots_decides_only_for_itself() {
    let mut machine = idle_machine();
    let _ahead = fetch(&mut machine, request(4, 0), at(500));
    let _free = fetch(&mut machine, request(4, 4), at(500));
    assert_eq!(transact_in_vain(&mut machine, false), 2);
    assert_eq!(machine.next_step(at(1)), Step::Sleep(Some(at(500))));
}

#[test]
fn a_fetch_whose_caller_has_gone_away_is_forgotten() {
    let mut machine = idle_machine();
    drop(fetch(&mut machine, request(1, 1), at(500)));
    assert_eq!(machine.next_step(at(0)), Step::Expire);
    machine.expire(at(0));
    assert_eq!(machine.next_step(at(0)), Step::Sleep(None));
}

/// The caller may go away between the decision to run a transaction and the claim for it.
#[test]
fn nothing_is_claimed_for_a_dropped_fetch() {
    let mut machine = idle_machine();
    drop(fetch(&mut machine, request(1, 1), at(500)));
    assert_eq!(transact_in_vain(&mut machine, true), 0);
}

#[test]
fn due_rows_are_promoted_when_they_are_due() {
    let mut machine = idle_machine();
    machine.committed(None, false, NextWake::Unknown);
    machine.learned_next_wake(Some(at(700)));
    assert_eq!(machine.next_step(at(699)), Step::Sleep(Some(at(700))));
    assert_eq!(machine.next_step(at(700)), Step::Transact);
}

/// L2: an engine that always has something due costs a transaction per millisecond, not a spinning thread.
#[test]
fn rows_that_stay_due_do_not_make_the_store_spin() {
    let mut machine = idle_machine();
    machine.committed(Some(at(700)), false, NextWake::Unknown);
    machine.learned_next_wake(Some(at(3)));
    assert_eq!(machine.next_step(at(700)), Step::Sleep(Some(at(701))));
}

#[test]
fn a_lost_store_refuses_work_until_it_is_reopened() {
    let mut machine = idle_machine();
    machine.lost(StoreFailure::new(FailureClass::OutcomeUnknown, "disk"), Vec::new(), at(0));
    assert_eq!(machine.next_step(at(0)), Step::Sleep(Some(at(10))));
    let mut reply = fetch(&mut machine, request(1, 1), at(500));
    assert_eq!(machine.next_step(at(0)), Step::Refuse);
    machine.refuse();
    let failure = reply.try_recv().unwrap().unwrap_err();
    assert_eq!(failure.class, FailureClass::Retryable);
    assert_eq!(machine.next_step(at(10)), Step::Reopen);
    assert_eq!(machine.reopen_failed(at(10)), 1);
    assert_eq!(machine.next_step(at(10)), Step::Sleep(Some(at(30))));
    assert_eq!(machine.reopened(at(30)), 1);
    assert_eq!(machine.next_step(at(30)), Step::AskNextWake);
}

#[test]
fn a_closed_machine_carries_out_unattended_operations_and_stops() {
    let mut machine = idle_machine();
    machine.accept(ack());
    let mut reply = fetch(&mut machine, request(1, 1), at(500));
    machine.accept(Request::Close);
    assert!(reply.try_recv().unwrap().is_err());
    assert_eq!(machine.next_step(at(0)), Step::Transact);
    assert_eq!(machine.take_batch().len(), 1);
    assert_eq!(machine.next_step(at(0)), Step::Stop);
}

#[test]
fn a_shared_store_is_looked_at_only_while_someone_waits() {
    let mut machine = Machine::new(StoreOptions::default());
    machine.learned_next_wake(None);
    assert_eq!(machine.next_step(at(0)), Step::Sleep(None));
    machine.observe(at(0), Duration::ZERO, true);
    assert_eq!(machine.next_step(at(0)), Step::PollForChanges);
    machine.polled_for_changes(false, false, at(0));
    assert_eq!(machine.next_step(at(0)), Step::Sleep(Some(at(50))));
}

/// D11: leases are checked at once, not with the next transaction.
#[test]
fn a_clock_that_was_set_wants_a_transaction_of_its_own() {
    let mut machine = idle_machine();
    assert_eq!(machine.observe(at(60_000), SECOND, false), None);
    assert_eq!(machine.observe(at(30_000), 2 * SECOND, false), Some(ClockStep::Back(31 * SECOND)));
    machine.learned_next_wake(None);
    assert_eq!(machine.next_step(at(30_000)), Step::Transact);
    machine.postpone_lease_change(at(30_000));
    assert_eq!(machine.next_step(at(30_000)), Step::Sleep(Some(at(31_000))), "it failed");
    assert_eq!(machine.next_step(at(31_000)), Step::Transact);
    machine.committed(None, true, NextWake::Known(None));
    assert_eq!(machine.next_step(at(31_000)), Step::Sleep(None));
}

/// A fetch without free slots may have been held up by them, unless the engine reports that nothing is left: then the
/// next fetch needs no transaction.
#[test]
fn a_fetch_after_one_that_left_nothing_asks_nothing() {
    for was_all in [false, true] {
        let mut machine = idle_machine();
        let _first = fetch(&mut machine, request(1, 0), at(60_000));
        transact_on(&mut machine, false, Empty { claims: 0, took_all: was_all });
        let _second = fetch(&mut machine, request(1, 0), at(60_000));
        assert_eq!(machine.next_step(at(0)) == Step::Transact, !was_all);
    }
}

/// A fetch that does not wait gets due items, and items made ready by operations that were submitted before it.
#[test]
fn a_fetch_does_not_expire_before_what_came_before_it() {
    let mut machine = idle_machine();
    let _first = fetch(&mut machine, request(1, 1), at(60_000));
    assert_eq!(transact_in_vain(&mut machine, false), 1);
    let at_once = fetch(&mut machine, request(1, 1), at(0));
    assert_eq!(machine.next_step(at(0)), Step::Expire, "nothing can have become ready");
    machine.expire(at(0));
    drop(at_once);

    machine.accept(ack());
    let _behind = fetch(&mut machine, request(1, 1), at(0));
    assert_eq!(machine.next_step(at(0)), Step::Transact);
    assert_eq!(transact_in_vain(&mut machine, true), 1);

    machine.learned_next_wake(Some(at(5)));
    let _at_due_time = fetch(&mut machine, request(1, 1), at(5));
    assert_eq!(machine.next_step(at(5)), Step::Transact);
}

/// Slots may have become busy while the fetch waited.
#[test]
fn a_fetch_asks_for_what_is_wanted_when_it_is_served() {
    let mut machine = idle_machine();
    let caller = Arc::new(Changing(Mutex::new(Wanted { max: 8, free_slots: 8 })));
    let _reply = caller.fetch(&mut machine);
    caller.wants(3, 2);
    machine.ask_demands();
    let (fetches, _) = machine.instances.requests(|_| None, |_| Prospect::Some);
    assert_eq!(
        Asked::waiting(&fetches).iter().map(|fetch| fetch.request.wanted()).collect::<Vec<_>>(),
        [caller.wanted()]
    );
}

#[test]
fn a_fetch_that_wants_nothing_by_now_waits_without_asking_the_store() {
    let mut machine = idle_machine();
    let caller = Arc::new(Changing(Mutex::new(Wanted { max: 1, free_slots: 1 })));
    let _reply = caller.fetch(&mut machine);
    caller.wants(0, 0);
    assert_eq!(transact_in_vain(&mut machine, true), 0);
    assert_eq!(machine.next_step(at(0)), Step::Sleep(Some(at(60_000))));
    caller.wants(1, 1);
    machine.accept(Request::DemandRose);
    assert_eq!(transact_in_vain(&mut machine, false), 1);
}

/// A fetch that only prefetches leaves items with earlier attempts.
#[test]
fn a_slot_that_became_free_makes_a_fetch_ask_the_store_again() {
    let mut machine = idle_machine();
    let caller = Arc::new(Changing(Mutex::new(Wanted { max: 4, free_slots: 0 })));
    let _reply = caller.fetch(&mut machine);
    assert_eq!(transact_in_vain(&mut machine, false), 1);
    caller.wants(2, 0);
    machine.accept(Request::DemandRose);
    assert_eq!(machine.next_step(at(0)), Step::Sleep(Some(at(60_000))), "it can start no more than before");
    caller.wants(2, 1);
    machine.accept(Request::DemandRose);
    assert_eq!(machine.next_step(at(0)), Step::Transact);
    assert_eq!(transact_in_vain(&mut machine, false), 1);
}
