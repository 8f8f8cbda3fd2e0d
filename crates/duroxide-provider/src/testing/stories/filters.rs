//! Capability filters.

use std::{collections::BTreeMap, time::Duration};

use semver::Version;

use crate::{
    HandlerCapability, OrchestrationFetch, SemverRange,
    store::InstanceFetch,
    testing::{Scenario, Turn, items::*, scenario::LEASE},
};

fn range(min: (u64, u64, u64), max: (u64, u64, u64)) -> SemverRange {
    SemverRange::new(Version::new(min.0, min.1, min.2), Version::new(max.0, max.1, max.2))
}

fn pinned(s: &mut Scenario, instance: &str, version: (u64, u64, u64)) {
    let pin = Version::new(version.0, version.1, version.2);
    s.run_first_turn(Turn::first(instance).pinned(pin), &start(instance));
}

/// S3.T2, S3.T3, S3.T4, S3.T5, S3.T7, S3.15
pub fn only_matching_pins_are_claimed_and_others_are_not_touched(mut s: Scenario) {
    pinned(&mut s, "old", (1, 0, 0));
    pinned(&mut s, "new", (2, 0, 0));
    s.send(&raise("old", "e"));
    s.send(&raise("new", "e"));
    assert_eq!(s.claim_versions(&[range((2, 0, 0), (2, 9, 9))]).unwrap().instance, "new");
    assert!(s.claim_versions(&[range((3, 0, 0), (3, 9, 9))]).is_none());
    let row = s.instance("old").unwrap();
    assert!(row.lock.is_none());
    assert_eq!(row.messages[0].attempt_count, 0);
    assert_eq!(s.claim_versions(&[range((1, 0, 0), (1, 9, 99))]).unwrap().instance, "old");
}

/// S3.T22
pub fn an_empty_filter_passes_nothing(mut s: Scenario) {
    pinned(&mut s, "a", (1, 0, 0));
    s.send(&raise("a", "e"));
    s.send(&start("unpinned"));
    assert!(s.claim_versions(&[]).is_none());
}

/// S3.T6, 17.3
pub fn an_execution_without_pin_passes(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "e"));
    assert_eq!(s.claim_versions(&[range((9, 0, 0), (9, 0, 0))]).unwrap().instance, "a");
    s.send(&start("b"));
    assert_eq!(s.claim_versions(&[range((9, 0, 0), (9, 0, 0))]).unwrap().instance, "b");
}

/// C13, S3.T44: oldest first over all ranges
pub fn all_ranges_count(mut s: Scenario) {
    pinned(&mut s, "a", (1, 0, 0));
    pinned(&mut s, "b", (3, 0, 0));
    s.send(&raise("a", "e"));
    s.send(&raise("b", "e"));
    let ranges = [range((1, 0, 0), (1, 9, 9)), range((3, 0, 0), (3, 9, 9))];
    assert_eq!(s.claim_versions(&ranges).unwrap().instance, "a");
    assert_eq!(s.claim_versions(&ranges).unwrap().instance, "b");
}

fn handlers(names: &[(&str, u64)]) -> InstanceFetch {
    let mut supported = BTreeMap::<String, Vec<SemverRange>>::new();
    for (name, major) in names {
        let versions = supported.entry((*name).to_owned()).or_default();
        versions.push(range((*major, 0, 0), (*major, 0, 0)));
    }
    let handlers =
        HandlerCapability { supported_orchestrations: Some(supported), supported_activities: None };
    InstanceFetch::new(&OrchestrationFetch::new(LEASE, Duration::ZERO).with_handlers(Some(&handlers)))
}

/// 17.7
pub fn handlers_are_matched_by_name_and_version(mut s: Scenario) {
    s.running("order 1");
    s.send(&start_of("ship 1", "Ship", Some("1.0.0")));
    s.send(&start_of("order 2", ORDER, Some("2.0.0")));
    s.send(&raise("order 1", "e"));
    let mut claim = |fetch| s.claim_all(&fetch).items.pop().map(|claim| claim.instance);
    assert_eq!(claim(handlers(&[("Other", 1)])), None);
    assert_eq!(claim(handlers(&[(ORDER, 1)])).as_deref(), Some("order 1"));
    assert_eq!(claim(handlers(&[(ORDER, 1)])), None);
    assert_eq!(claim(handlers(&[(ORDER, 2)])).as_deref(), Some("order 2"));
    assert_eq!(claim(handlers(&[("Ship", 1)])).as_deref(), Some("ship 1"));
}

/// 17.7, 8.5: while the start of its successor rests, nothing of it counts.
pub fn a_successor_whose_start_is_hidden_is_matched_by_its_instance(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    let turn = Turn::later(&claim).continue_as_new().send(continue_as_new("a", Some("2.0.0")));
    s.commit(&claim, turn).unwrap();
    let successor = s.claim_all(&handlers(&[(ORDER, 2)])).items.pop().unwrap();
    s.abandon(&successor, Some(LEASE), true).unwrap();
    s.send(&raise("a", "more"));
    assert!(s.claim_all(&handlers(&[(ORDER, 2)])).items.is_empty());
    assert_eq!(s.claim_all(&handlers(&[(ORDER, 1)])).items.len(), 1);
}

/// 17.7: of two starts the first decides, also after it rested.
pub fn a_start_that_rested_is_matched_again(mut s: Scenario) {
    s.send(&start_of("a", ORDER, Some("1.0.0")));
    let claim = s.claim().unwrap();
    s.abandon(&claim, Some(LEASE), true).unwrap();
    s.send(&start_of("a", ORDER, Some("2.0.0")));
    s.pass(LEASE);
    s.send(&raise("a", "e"));
    assert!(s.claim_all(&handlers(&[(ORDER, 2)])).items.is_empty());
    assert_eq!(s.claim_all(&handlers(&[(ORDER, 1)])).items.len(), 1);
}

/// 17.7, 8.5
pub fn a_waiting_successor_is_matched_by_its_own_name_and_version(mut s: Scenario) {
    s.running("a");
    s.send(&raise("a", "go"));
    let claim = s.claim().unwrap();
    let turn = Turn::later(&claim).continue_as_new().send(continue_as_new("a", Some("2.0.0")));
    s.commit(&claim, turn).unwrap();
    assert!(s.claim_all(&handlers(&[(ORDER, 1)])).items.is_empty());
    assert_eq!(s.claim_all(&handlers(&[(ORDER, 2)])).items.len(), 1);
}
