//! Slots in virtual time.

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(millis: u64) -> Moment {
    Moment::new(ms(millis))
}

#[test]
fn a_slot_is_free_as_soon_as_its_result_is_handed_in() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.start(None), Some(0));
    assert_eq!(slots.start(None), Some(1));
    assert_eq!(slots.start(None), None);
    slots.submit(Placement::Slot(0), 10, ms(1), at(0));
    assert_eq!(slots.start(None), Some(0));
}

#[test]
fn a_bound_item_waits_for_its_own_slot() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.start(Some(1)), Some(1));
    assert_eq!(slots.start(Some(1)), None);
    slots.end_without_result(Placement::Slot(1));
    assert_eq!(slots.start(Some(1)), Some(1));
}

#[test]
fn quick_items_pass_beyond_the_slots_and_slow_ones_do_not() {
    let mut slots = Slots::new(1, 2);
    assert!(!slots.start_overflow(), "nobody knows yet how long they take");
    assert_eq!(slots.start(None), Some(0));
    slots.submit(Placement::Slot(0), 1, ms(1), at(0));
    assert!(slots.start_overflow() && slots.start_overflow());
    assert!(!slots.start_overflow(), "no more than allowed");
    slots.submit(Placement::Overflow, 1, ms(6), at(0));
    assert!(!slots.start_overflow(), "the last one was slow");
    assert_eq!(slots.free(), 1);
}

#[test]
fn a_reserved_slot_is_left_to_what_is_bound_to_it() {
    let mut slots = Slots::new(2, 0);
    slots.reserve(0);
    assert_eq!(slots.wanted(at(0)), Wanted { max: 1, free_slots: 1 });
    assert_eq!(slots.start(None), Some(1));
    assert_eq!(slots.start(None), None);
    assert_eq!(slots.start(Some(0)), Some(0));
    slots.end_without_result(Placement::Slot(0));
    slots.end_reservation(0);
    assert_eq!(slots.start(None), Some(0));
}

#[test]
fn nothing_starts_while_too_much_is_on_its_way_to_the_store() {
    let mut slots = Slots::new(1, 0);
    for _ in 0..COMMITTING_MAX {
        let slot = slots.start(None).unwrap();
        slots.submit(Placement::Slot(slot), 1, ms(1), at(0));
    }
    assert_eq!(slots.start(None), None);
    assert!(slots.committed(1), "this is what everyone waited for");
    assert!(!slots.committed(1), "nobody waits any more");
    assert_eq!(slots.start(None), Some(0));
}

#[test]
fn a_result_above_the_byte_bound_goes_alone() {
    let mut slots = Slots::new(2, 0);
    let slot = slots.start(None).unwrap();
    slots.submit(Placement::Slot(slot), COMMITTING_BYTES_MAX + 1, ms(1), at(0));
    assert_eq!(slots.start(None), None);
    assert!(slots.committed(COMMITTING_BYTES_MAX + 1));
    assert_eq!(slots.start(None), Some(0));
}

#[test]
fn short_work_is_fetched_ahead_and_long_work_never() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.wanted(at(0)), Wanted { max: 2, free_slots: 2 });
    for _ in 0..5 {
        let slot = slots.start(None).unwrap();
        slots.submit(Placement::Slot(slot), 1, ms(1), at(100));
    }
    assert_eq!(slots.wanted(at(105)), Wanted { max: 2 + 5 * PREFETCH_GROWTH, free_slots: 2 });
    slots.set_queued(3);
    assert_eq!(slots.wanted(at(105)), Wanted { max: 2 + 5 * PREFETCH_GROWTH - 3, free_slots: 0 });
    slots.set_queued(0);
    let late = slots.wanted(at(126));
    assert_eq!(
        late,
        Wanted { max: 2 + 5 * PREFETCH_GROWTH, free_slots: 2 },
        "no fetch since: the store was slow"
    );
    slots.begin_shared_fetch(at(126)).unwrap();
    slots.end_shared_fetch();
    assert_eq!(slots.wanted(at(126)), Wanted { max: 2, free_slots: 2 }, "the window has passed");
    let slot = slots.start(None).unwrap();
    slots.submit(Placement::Slot(slot), 1, ms(11), at(126));
    assert_eq!(slots.wanted(at(126)), Wanted { max: 2, free_slots: 2 }, "the last one took long");
}

#[test]
fn no_more_than_a_bounded_number_is_fetched_ahead() {
    let mut slots = Slots::new(1, 0);
    for _ in 0..PREFETCH_MAX + 10 {
        let slot = slots.start(None).unwrap();
        slots.submit(Placement::Slot(slot), 0, ms(0), at(0));
        slots.committed(0);
    }
    assert_eq!(slots.wanted(at(0)).max, 1 + PREFETCH_MAX);
}

#[test]
fn one_shared_fetch_waits_and_asks_for_what_is_wanted_when_it_is_served() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.begin_shared_fetch(at(0)), Some(Wanted { max: 2, free_slots: 2 }));
    assert_eq!(slots.begin_shared_fetch(at(0)), None, "one waits");
    slots.start(None).unwrap();
    assert_eq!(slots.ask(at(0)), Wanted { max: 1, free_slots: 1 });
    slots.start(None).unwrap();
    assert_eq!(slots.ask(at(0)), Wanted { max: 0, free_slots: 0 });
    slots.end_shared_fetch();
    assert_eq!(slots.begin_shared_fetch(at(0)), None, "nothing is wanted");
}

#[test]
fn a_free_slot_is_news_for_a_fetch_that_was_told_of_none() {
    let mut slots = Slots::new(2, 0);
    assert!(!slots.demand_has_risen(at(0)), "no fetch waits");
    slots.begin_shared_fetch(at(0)).unwrap();
    assert!(!slots.demand_has_risen(at(0)), "it knows of both");
    slots.start(None).unwrap();
    slots.start(None).unwrap();
    assert!(!slots.demand_has_risen(at(0)));
    slots.ask(at(0));
    assert!(!slots.demand_has_risen(at(0)), "none is free");
    slots.end_without_result(Placement::Slot(0));
    assert!(slots.demand_has_risen(at(0)));
    assert!(!slots.demand_has_risen(at(0)), "it was told");
}

#[test]
fn a_free_slot_is_awaited_unless_the_store_learns_of_it() {
    let mut slots = Slots::new(2, 0);
    slots.sleep(false);
    assert!(slots.is_slot_awaited(), "no fetch waits");
    slots.begin_shared_fetch(at(0)).unwrap();
    slots.sleep(false);
    assert!(!slots.is_slot_awaited());
    slots.sleep(true);
    assert!(slots.is_slot_awaited(), "a slot has yet to get its own fetch");
    slots.set_queued(1);
    slots.sleep(false);
    assert!(slots.is_slot_awaited(), "an item waits for a slot");
    slots.set_queued(0);
    slots.sleep(false);
    slots.await_free_slot();
    assert!(slots.is_slot_awaited(), "the loop runs");
}
