//! Sessions.

use std::time::Duration;

use crate::{
    SessionFetchConfig,
    store::{ActivityFetch, Op},
    testing::{
        Scenario,
        items::*,
        scenario::{LEASE, work_fetch},
    },
};

const HOUR: Duration = Duration::from_secs(3_600);

fn send(s: &mut Scenario, id: u64) {
    s.send(&routed_activity("a", id, None, Some("s")));
}

fn renew(s: &mut Scenario, owner: &str, idle_timeout: Duration) -> usize {
    s.count(&Op::RenewSessions { owners: vec![owner.to_owned()], extend_for: LEASE, idle_timeout })
}

fn clean_up(s: &mut Scenario) -> usize {
    s.count(&Op::CleanupSessions)
}

/// 13.1
pub fn a_session_binds_its_activities_to_one_owner(mut s: Scenario) {
    send(&mut s, 1);
    send(&mut s, 2);
    s.send(&activity("a", 3));
    assert!(s.session_work("w1").is_some());
    assert_eq!(s.session_work("w2").unwrap().item, activity("a", 3));
    assert!(s.session_work("w2").is_none());
    assert!(s.session_work("w1").is_some());
}

/// A11
pub fn activities_of_a_session_need_a_session_fetch(mut s: Scenario) {
    send(&mut s, 1);
    assert!(s.work().is_none());
    assert!(s.session_work("w1").is_some());
}

/// 13.1, 13.2
pub fn an_ended_session_is_claimed_by_another(mut s: Scenario) {
    send(&mut s, 1);
    send(&mut s, 2);
    let first = s.session_work("w1").unwrap();
    s.pass(LEASE - Duration::from_millis(1));
    s.renew_work(&first).unwrap();
    assert!(s.session_work("w2").is_none());
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(Duration::from_millis(1))));
    s.pass(Duration::from_millis(1));
    assert!(s.session_work("w2").is_some());
    s.ack(&first, None).unwrap();
    send(&mut s, 3);
    assert!(s.session_work("w1").is_none());
}

/// 13.2
pub fn a_renewed_session_stays_with_its_owner(mut s: Scenario) {
    send(&mut s, 1);
    send(&mut s, 2);
    s.session_work("w1").unwrap();
    s.pass(LEASE / 2);
    assert_eq!(renew(&mut s, "w1", HOUR), 1);
    assert_eq!(renew(&mut s, "w2", HOUR), 0);
    s.pass(LEASE / 2);
    assert!(s.session_work("w2").is_none());
    s.pass(LEASE / 2);
    assert_eq!(renew(&mut s, "w1", HOUR), 0, "it has ended");
    assert!(s.session_work("w2").is_some());
}

/// 13.2
pub fn an_idle_session_is_not_renewed(mut s: Scenario) {
    send(&mut s, 1);
    s.session_work("w1").unwrap();
    s.pass(Duration::from_secs(5));
    assert_eq!(renew(&mut s, "w1", Duration::from_secs(5)), 0);
    assert_eq!(renew(&mut s, "w1", Duration::from_secs(6)), 1);
}

/// 13.2
pub fn renewal_and_ack_keep_a_session_busy(mut s: Scenario) {
    send(&mut s, 1);
    let work = s.session_work("w1").unwrap();
    let idle = Duration::from_secs(5);
    s.pass(Duration::from_secs(4));
    s.renew_work(&work).unwrap();
    s.pass(Duration::from_secs(4));
    assert_eq!(renew(&mut s, "w1", idle), 1);
    s.ack(&work, None).unwrap();
    s.pass(Duration::from_secs(4));
    assert_eq!(renew(&mut s, "w1", idle), 1);
    s.pass(Duration::from_secs(4));
    assert_eq!(renew(&mut s, "w1", idle), 0);
}

/// A11
pub fn clean_up_keeps_sessions_that_are_live_or_needed(mut s: Scenario) {
    send(&mut s, 1);
    let work = s.session_work("w1").unwrap();
    assert_eq!(clean_up(&mut s), 0, "live");
    s.pass_lease();
    assert_eq!(clean_up(&mut s), 0, "needed");
    let work = s.session_work("w1").filter(|again| again.item == work.item).unwrap();
    s.ack(&work, None).unwrap();
    s.pass_lease();
    assert_eq!(clean_up(&mut s), 1);
    send(&mut s, 2);
    assert!(s.session_work("w2").is_some());
}

/// 13.1
pub fn a_batch_takes_several_activities_of_a_session_it_claims(mut s: Scenario) {
    send(&mut s, 1);
    send(&mut s, 2);
    let session = SessionFetchConfig { owner_id: "w1".to_owned(), lock_timeout: LEASE };
    let fetch = ActivityFetch { session: Some(session), ..work_fetch(5) };
    assert_eq!(s.work_all(&fetch).items.len(), 2);
}

/// D11: sessions are leases too.
pub fn a_clock_set_back_frees_a_session_after_one_lease(mut s: Scenario) {
    s.pass(HOUR);
    send(&mut s, 1);
    send(&mut s, 2);
    s.session_work("w1").unwrap();
    s.notice_turn_back(HOUR);
    assert!(s.session_work("w2").is_none());
    assert_eq!(s.next_wake(), Some(s.now().saturating_add(LEASE)));
    s.pass_lease();
    assert!(s.session_work("w2").is_some());
}

/// D11: a clock that was ahead does not keep an idle session busy.
pub fn a_clock_set_back_makes_no_session_busy(mut s: Scenario) {
    s.pass(HOUR);
    send(&mut s, 1);
    s.session_work("w1").unwrap();
    s.notice_turn_back(HOUR);
    s.pass(LEASE / 2);
    assert_eq!(renew(&mut s, "w1", LEASE / 2), 0);
    assert_eq!(renew(&mut s, "w1", LEASE), 1);
}

/// D11: its owner lives, and was not idle during the time that the clock skipped.
pub fn a_clock_set_forward_leaves_a_session_to_its_owner(mut s: Scenario) {
    send(&mut s, 1);
    send(&mut s, 2);
    s.session_work("w1").unwrap();
    s.pass(LEASE / 2);
    s.notice_turn_forward(HOUR);
    s.promote();
    assert!(s.session_work("w2").is_none());
    assert_eq!(renew(&mut s, "w1", LEASE / 2), 0, "it was idle for half a lease");
    assert_eq!(renew(&mut s, "w1", LEASE), 1);
    s.pass_lease();
    s.promote();
    assert!(s.session_work("w2").is_some());
}
