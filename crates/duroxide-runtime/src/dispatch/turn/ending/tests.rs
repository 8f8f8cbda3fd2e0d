//! Ends without code.

use duroxide_core::Timestamp;

use super::*;

fn seed() -> Seed {
    Seed {
        instance: "o-1".into(),
        execution_id: 3,
        name: "order".into(),
        version: "1.0.0".into(),
        input: "in".into(),
        parent: Some(ParentLink { instance: "boss".into(), event_id: 4, execution_id: Some(2) }),
        carried: vec![("q".into(), "unread".into())],
        custom_status: Some("half".into()),
    }
}

#[test]
fn the_seed_of_a_refused_round_is_read_back_from_its_events() {
    let events = seed().into_events(Timestamp::from_millis(7));
    assert_eq!(seed_of(&events), Some(seed()));
    assert_eq!(seed_of(&events[1..]), None);
}

/// 16.6
#[test]
fn an_unreadable_execution_fails_behind_its_last_event() {
    let record = |last| record_of(EndTarget::Unreadable, "o-1", 3, vec![], last);
    assert!(matches!(record(Some(5)), Record::Unreadable { last_event_id: 5, execution_id: 3, .. }));
    assert!(matches!(record(None), Record::Unreadable { last_event_id: 99_998, .. }));
}

/// 6.6, 6.4
#[test]
fn automatic_ids_name_the_parents_call() {
    let link = |id| link_of_automatic_id(id).map(|link| (link.instance, link.event_id, link.execution_id));
    assert_eq!(link("boss::sub::5"), Some(("boss".into(), 5, Some(1))));
    assert_eq!(link("boss::sub::3_5"), Some(("boss".into(), 5, Some(3))));
    assert_eq!(link("boss::sub::3_5::sub::2"), Some(("boss::sub::3_5".into(), 2, Some(1))));
    assert_eq!(link("explicit"), None);
    assert_eq!(link("boss::sub::x"), None);
}
