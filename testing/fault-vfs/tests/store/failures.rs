//! Disks that fail or run full under a served store.

use duroxide_core::EventKind;
use duroxide_provider::{
    store::StoreSnapshot,
    testing::{
        Turn,
        items::{raise, start},
    },
};
use duroxide_sqlite::SqliteOptions;
use fault_vfs::{Disk, DiskError, Fault, Operation, Survival};

use crate::{
    caller::{Caller, Seen},
    transcript::{content, open},
};

/// Start, round, ack, enqueue, continue-as-new, end.
fn live(caller: &mut Caller) {
    caller.send(&start("order"));
    let claim = caller.claim();
    caller.commit(&claim, Turn::first("order").activity().set("step", "1"));
    let work = caller.work();
    caller.ack(&work);
    caller.send(&raise("order", "go"));
    let claim = caller.claim();
    let go = EventKind::ExternalEvent { name: "e".to_owned(), data: "go".to_owned() };
    let turn = Turn::later(&claim).completed(2).event(None, go);
    caller.commit(&claim, turn.continue_with(Turn::start_of("order", 2).activity()));
    let claim = caller.claim();
    caller.commit(&claim, Turn::later(&claim).status(Some("shipping")));
    let work = caller.work();
    caller.ack(&work);
    let claim = caller.claim();
    caller.commit(&claim, Turn::later(&claim).completed(2).complete("done"));
}

/// Lives once for each operation that can fail, and always ends as if nothing had. Returns the failures that the caller met.
fn fail_everywhere(make: impl Fn(Disk) -> Caller, fault: impl Fn(u64) -> Fault) -> Seen {
    let made = Disk::new();
    drop(open(&made, SqliteOptions::default()));
    let new_store = || made.after_power_cut(Survival::Synced);
    let end = undisturbed_end(new_store());
    let mut all = Seen::default();
    for nth in 1.. {
        let mut caller = make(new_store());
        caller.disk.inject(fault(nth));
        live(&mut caller);
        assert_eq!(caller.state(), end, "{:?}", fault(nth));
        assert_eq!(durable_state(&caller.disk), end, "{:?}", fault(nth));
        all = all.and(caller.seen);
        if caller.disk.failures() == 0 {
            break;
        }
    }
    all
}

/// The content after a power cut (I18): a commit that was found done after a failure must be on disk, too.
fn durable_state(disk: &Disk) -> StoreSnapshot {
    let survivor = disk.after_power_cut(Survival::Synced);
    content(&mut open(&survivor, SqliteOptions::default()))
}

/// The content of the store without a failure.
fn undisturbed_end(disk: Disk) -> StoreSnapshot {
    let mut caller = Caller::new(disk);
    live(&mut caller);
    assert_eq!(caller.seen, Seen::default());
    caller.state()
}

/// D8, S4.24, S4.26: a commit that fails with an I/O error has an unknown outcome. The store answers with
/// retryable errors, opens its file anew, and a repeated round or ack finds its lock; claims without an answer are
/// given back.
#[test]
fn an_io_error_at_any_operation_costs_a_retry_and_nothing_else() {
    let seen = fail_everywhere(Caller::new, |nth| Fault::once_at(nth, DiskError::Io));
    assert!(seen.found_lock > 0, "{seen:?}");
}

/// D8: the same while another connection keeps the log open.
#[test]
fn an_io_error_with_an_open_reader_costs_only_a_retry() {
    let seen =
        fail_everywhere(|disk| Caller::new(disk).beside_a_reader(), |nth| Fault::once_at(nth, DiskError::Io));
    assert!(seen.found_lock > 0, "{seen:?}");
}

/// D8, S4.24: if the disk goes on failing, so that the log of a failed commit is left behind, that commit may
/// turn out to have happened. The repeated round or ack then finds an invalid token, and nothing is there twice.
#[test]
fn a_commit_that_happened_without_its_answer_is_found_done() {
    let failing = |nth| Fault { times: Some(3), ..Fault::once_at(nth, DiskError::Io).on(Operation::Sync) };
    let seen = fail_everywhere(Caller::new, failing);
    assert!(seen.found_done > 0, "{seen:?}");
}

/// D8: after a failed commit the store answers with retryable errors until its disk has taken a commit again.
#[test]
fn a_store_is_not_back_before_its_disk_takes_a_commit() {
    let mut caller = Caller::new(Disk::new());
    caller.disk.inject(Fault::from_then_on(1, DiskError::Io).on(Operation::Sync));
    caller.send_once(&start("order")).unwrap_err();
    for _ in 0..100 {
        assert!(caller.is_away(), "the store is back, but its disk still fails");
    }
    caller.disk.heal();
    assert!(caller.state().instances.len() <= 1, "the start is there or not");
    caller.send_once(&start("other")).unwrap();
}

/// D8: a full disk is a retryable error, and nothing happened. When there is room again, work goes on.
#[test]
fn a_full_disk_stops_work_without_a_trace_until_there_is_room() {
    let nothing_happened = |caller: &mut Caller| {
        if caller.seen.failures < 3 {
            assert_eq!(caller.state(), caller.last_state);
        } else {
            caller.disk.heal();
        }
    };
    let full = |nth| Fault::from_then_on(nth, DiskError::Full).on(Operation::Write);
    let seen = fail_everywhere(|disk| Caller::new(disk).on_failure(nothing_happened), full);
    assert!(seen.found_lock > 0 && seen.found_done == 0, "{seen:?}");
}
