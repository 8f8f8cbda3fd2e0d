//! The answers of reads.

use std::time::Duration;

use duroxide_core::{Event, EventKind};
use semver::Version;

use crate::{
    InstanceQuery,
    store::{Ended, RunningVersion, StoredStatus},
    testing::{Scenario, Turn, items::*},
};

/// 16.11, D13
pub fn a_mailbox_is_invisible(mut s: Scenario) {
    s.send(&raise("ghost", "e"));
    s.send(&start("started"));
    s.send(&activity("worker", 1));
    let read = s.read();
    assert!(read.instances(None).unwrap().is_empty());
    for id in ["ghost", "started", "worker"] {
        assert!(read.status(id).unwrap().is_none());
        assert!(read.stats(id).unwrap().is_none());
        assert!(read.instance_info(id).unwrap().is_none());
        assert!(read.current_execution(id).unwrap().is_none());
        assert!(read.executions(id).unwrap().is_empty());
        assert!(read.history(id, None).unwrap().is_empty());
    }
    assert_eq!(read.system_metrics().unwrap().total_instances, 0);
}

/// 20.2a: an accepted start is visible to the reads that clients make, with name, version and parent, until its first
/// turn is committed. The other reads do not know it.
pub fn a_pending_instance_is_listed_and_has_a_status(mut s: Scenario) {
    s.ended("done");
    s.send(&raise("ghost", "e"));
    s.send(&start_of("now", "Bill", Some("2.1.0")));
    s.send_later(&start("later"), Duration::from_secs(5));
    s.send(&start("done"));
    let shown = |s: &mut Scenario| -> Vec<String> {
        let pages = s.read().select_instances(&InstanceQuery::default(), None, 10).unwrap();
        pages.into_iter().map(|page| format!("{} {}", page.info.instance_id, page.info.status)).collect()
    };
    assert_eq!(shown(&mut s), ["later Pending", "now Pending", "done Completed"]);
    assert_eq!(s.read().pending_instances().unwrap(), 2);
    for id in ["now", "later"] {
        assert_eq!(s.read().status_or_pending(id).unwrap(), Some(StoredStatus::PENDING));
        assert_eq!(s.read().status(id).unwrap(), None);
    }
    for id in ["ghost", "unknown"] {
        assert_eq!(s.read().status_or_pending(id).unwrap(), None, "{id} was never started");
    }
    assert!(s.read().status_or_pending("done").unwrap().unwrap().terminal_event.is_some());
    assert_eq!(s.read().instances(None).unwrap(), ["done"]);
    assert!(s.read().instances(Some(InstanceQuery::PENDING)).unwrap().is_empty());

    let of_bill = InstanceQuery::default().status(InstanceQuery::PENDING).orchestration_name("Bill");
    let [only] = s.read().select_instances(&of_bill, None, 10).unwrap().try_into().unwrap();
    assert_eq!((only.info.instance_id.as_str(), only.info.orchestration_version.as_str()), ("now", "2.1.0"));
    assert_eq!((only.info.created_at, only.info.current_execution_id), (Scenario::BEGIN_MS, 1));

    let claim = s.claim().unwrap();
    assert_eq!(claim.instance, "now");
    assert_eq!(s.read().pending_instances().unwrap(), 2, "its first turn is not committed");
    s.commit(&claim, Turn::first("now")).unwrap();
    assert_eq!(shown(&mut s), ["later Pending", "now Running", "done Completed"]);
    s.force_delete("now");
    assert_eq!(s.read().status_or_pending("now").unwrap(), None);
}

/// 20.2a: pages of pending and known instances are one list.
pub fn pages_hold_pending_and_known_instances_in_one_order(mut s: Scenario) {
    for (id, begins) in [("a", true), ("b", false), ("c", true), ("d", false), ("e", false)] {
        s.send_later(&start(id), Duration::from_secs(u64::from(!begins)));
        if begins {
            let claim = s.claim().unwrap();
            s.commit(&claim, Turn::first(id)).unwrap();
        }
    }
    s.send(&child_start("f", "c", 1, 7));
    let mut listed = Vec::new();
    let mut below = None;
    while let Some(last) = {
        let page = s.read().select_instances(&InstanceQuery::default(), below, 2).unwrap();
        listed.extend(page.iter().map(|selected| selected.info.instance_id.clone()));
        page.last().map(|last| last.row)
    } {
        below = Some(last);
    }
    assert_eq!(listed, ["f", "e", "d", "c", "b", "a"]);
    let of_c = InstanceQuery::default().parent("c");
    assert_eq!(s.read().select_instances(&of_c, None, 10).unwrap().len(), 1);
    let roots = InstanceQuery::default().roots_only().status(InstanceQuery::PENDING).id_prefix("d");
    assert_eq!(s.read().select_instances(&roots, None, 10).unwrap().len(), 1);
}

/// 20.2
pub fn status_shows_the_end_and_the_custom_status(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").status(Some("half")), &start("a"));
    let status = s.read().status("a").unwrap().unwrap();
    assert_eq!((status.execution_id, status.terminal_event), (1, None));
    assert_eq!((status.custom_status.as_deref(), status.custom_status_version), (Some("half"), 1));
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).complete("done")).unwrap();
    let status = s.read().status("a").unwrap().unwrap();
    assert!(status.terminal_event.unwrap().contains("OrchestrationCompleted"));
    assert!(s.read().descriptor("a").unwrap().unwrap().first_event.contains("OrchestrationStarted"));
    assert_eq!(s.read().last_event_id("a", 1).unwrap(), Some(3));
    assert_eq!(s.read().last_event_id("a", 2).unwrap(), None);
    s.run_first_turn(Turn::first("b").continue_as_new(), &start("b"));
    assert_eq!(s.read().status("b").unwrap().unwrap().terminal_event, None, "it waits for its successor");
}

/// 20.2: reads of many at once return the same as single reads, in any order, with repeated and unknown ids.
pub fn several_are_read_as_each_alone(mut s: Scenario) {
    s.run_first_turn(Turn::first("continued").set("k", "v").continue_as_new(), &start("continued"));
    s.run_first_turn(Turn::first("runs").status(Some("half")).activity(), &start("runs"));
    let ids = ["runs", "nobody", "continued", "runs"].map(str::to_owned);
    let executions: Vec<(String, u64)> =
        ids.iter().flat_map(|id| [2, 1].map(|execution| (id.clone(), execution))).collect();
    let read = s.read();
    let alone: Vec<_> = executions.iter().map(|(id, number)| read.load(id, *number).unwrap()).collect();
    assert!(alone.iter().any(|execution| !execution.kv.is_empty()));
    assert_eq!(format!("{:?}", read.load_all(&executions).unwrap()), format!("{alone:?}"));
    let alone = ids.each_ref().map(|id| read.descriptor(id).unwrap());
    assert_eq!(format!("{:?}", read.descriptors(&ids).unwrap()), format!("{alone:?}"));
    let alone = ids.each_ref().map(|id| read.status(id).unwrap());
    assert_eq!(read.statuses(&ids).unwrap(), alone);
}

/// 20.2: a waiting client gets the end with the answer to the round, and need not read. Each commit of a scenario
/// compares that with a read; this story only tries the ways in which an instance ends.
pub fn a_reported_end_equals_the_status_that_a_read_returns(mut s: Scenario) {
    let run_to_end = |s: &mut Scenario, instance: &str| {
        s.send(&raise(instance, "go"));
        let claim = s.claim().unwrap();
        s.commit_end(&claim, Turn::later(&claim).complete("done"))
    };
    let plain = Ended { custom_status: None, custom_status_version: 0 };
    s.run_first_turn(Turn::first("plain"), &start("plain"));
    assert_eq!(run_to_end(&mut s, "plain"), Some(plain.clone()), "the common case costs no read");
    s.send(&start("short"));
    let claim = s.claim().unwrap();
    assert_eq!(s.commit_end(&claim, Turn::first("short").fail()), Some(plain.clone()));
    s.run_first_turn(Turn::first("slow"), &start("slow"));
    s.send(&raise("slow", "go"));
    let claim = s.claim().unwrap();
    s.renew(&claim).unwrap();
    let end = s.commit_end(&claim, Turn::later(&claim).complete("done"));
    assert_eq!(end, Some(plain), "a renewal makes nobody forget");

    s.run_first_turn(Turn::first("said").status(Some("half")), &start("said"));
    run_to_end(&mut s, "said");
    s.send(&start("says"));
    let claim = s.claim().unwrap();
    s.commit_end(&claim, Turn::first("says").status(Some("all")).complete("done"));
    s.run_first_turn(Turn::first("repaired"), &start("repaired"));
    let status = EventKind::CustomStatusUpdated { status: Some("by hand".to_owned()) };
    s.append("repaired", 1, &[Event::with_event_id(2, "repaired", 1, None, status)]).unwrap();
    run_to_end(&mut s, "repaired");

    s.send(&start("goes on"));
    let claim = s.claim().unwrap();
    let next = Turn::start_of("goes on", 2).status(Some("again"));
    assert_eq!(s.commit_end(&claim, Turn::first("goes on").continue_with(next)), None);
    let claim = s.claim().unwrap();
    s.commit_end(&claim, Turn::later(&claim).complete("done"));
    s.send(&start("waits"));
    let claim = s.claim().unwrap();
    assert_eq!(s.commit_end(&claim, Turn::first("waits").continue_as_new()), None);
}

/// A12
pub fn instances_are_listed_newest_first(mut s: Scenario) {
    s.ended("a");
    s.running("b");
    s.ended("c");
    assert_eq!(s.read().instances(None).unwrap(), ["c", "b", "a"]);
    assert_eq!(s.read().instances(Some("Completed")).unwrap(), ["c", "a"]);
    assert_eq!(s.read().instances(Some("Running")).unwrap(), ["b"]);
    assert_eq!(s.read().running_versions().unwrap().len(), 1);
}

/// S2.13, S2.14, S2.16: pins are stored with the executions; a history is read only where no pin is stored.
pub fn running_instances_show_their_pins(mut s: Scenario) {
    s.running("unpinned");
    s.ended("ended");
    s.run_first_turn(Turn::first("pinned").pinned(Version::new(3, 1, 4)), &start("pinned"));
    let [RunningVersion::Unpinned { first_event }, RunningVersion::Pinned(pin)] =
        &s.read().running_versions().unwrap()[..]
    else {
        panic!("{:?}", s.read().running_versions())
    };
    assert!(first_event.contains("OrchestrationStarted"), "{first_event}");
    assert_eq!(pin.to_string(), "3.1.4");
}

/// A12
pub fn infos_and_counts_agree(mut s: Scenario) {
    s.running("a");
    s.pass(Duration::from_secs(2));
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    s.commit(&claim, Turn::later(&claim).fail()).unwrap();
    let info = s.read().instance_info("a").unwrap().unwrap();
    assert_eq!((info.orchestration_name.as_str(), info.orchestration_version.as_str()), (ORDER, VERSION));
    assert_eq!((info.status.as_str(), info.current_execution_id), ("Failed", 1));
    assert_eq!((info.created_at, info.updated_at), (Scenario::BEGIN_MS, Scenario::BEGIN_MS + 2_000));
    let execution = s.read().execution_info("a", 1).unwrap().unwrap();
    assert_eq!((execution.event_count, execution.completed_at), (2, Some(info.updated_at)));
    assert!(s.read().execution_info("a", 2).unwrap().is_none());
    s.ended("b");
    let metrics = s.read().system_metrics().unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions, metrics.total_events), (2, 2, 4));
    assert_eq!((metrics.completed_instances, metrics.failed_instances, metrics.running_instances), (1, 1, 0));
}

/// A12
pub fn queue_depths_count_unlocked_rows(mut s: Scenario) {
    s.send(&start("a"));
    s.send(&start("b"));
    s.send(&activity("a", 1));
    s.send(&activity("a", 2));
    s.claim().unwrap();
    s.work().unwrap();
    let depths = s.read().queue_depths().unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue, depths.timer_queue), (1, 1, 0));
    s.pass_lease();
    s.send(&raise("c", "e"));
    let depths = s.read().queue_depths().unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (3, 2), "ended leases hold nothing");
}

/// A12
pub fn children_are_listed_in_order(mut s: Scenario) {
    s.run_first_turn(Turn::first("p").child("z").child("y"), &start("p"));
    for (child, call) in [("z", 2), ("y", 3)] {
        let claim = s.claim().unwrap();
        s.commit(&claim, Turn::first_of_child(child, "p", 1, call)).unwrap();
    }
    assert_eq!(s.read().children("p").unwrap(), ["z", "y"]);
    assert_eq!(s.read().instance_info("z").unwrap().unwrap().parent_instance_id.as_deref(), Some("p"));
    assert!(s.read().children("z").unwrap().is_empty());
}

/// A11
pub fn stats_show_the_current_execution(mut s: Scenario) {
    s.run_first_turn(Turn::first("a").set("k", "four").set("gone", "x").clear("gone"), &start("a"));
    let bytes: usize = s.read().history("a", None).unwrap().iter().map(|event| event.data.len()).sum();
    let stats = s.read().stats("a").unwrap().unwrap();
    assert_eq!((stats.history_event_count, stats.history_size_bytes), (4, bytes as u64));
    assert_eq!((stats.kv_user_key_count, stats.kv_total_value_bytes), (1, 4));
}
