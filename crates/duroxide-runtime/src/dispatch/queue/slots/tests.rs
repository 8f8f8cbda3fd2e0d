//! Slots in virtual time.

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(millis: u64) -> Moment {
    Moment::new(ms(millis))
}

#[test]
fn a_slot_is_free_as_soon_as_its_result_is_submitted() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.take(None), Some(0));
    assert_eq!(slots.take(None), Some(1));
    assert_eq!(slots.take(None), None);
    slots.submit(0, 10, ms(1), at(0));
    assert_eq!(slots.take(None), Some(0));
}

#[test]
fn a_bound_item_waits_for_its_own_slot() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.take(Some(1)), Some(1));
    assert_eq!(slots.take(Some(1)), None);
    slots.release(1);
    assert_eq!(slots.take(Some(1)), Some(1));
}

#[test]
fn quick_items_get_extra_slots_and_slow_ones_do_not() {
    let mut slots = Slots::new(1, 2);
    assert_eq!(slots.take(None), Some(0));
    assert_eq!(slots.take(None), None, "it is not known yet how long they take");
    slots.submit(0, 1, ms(1), at(0));
    assert_eq!([(); 3].map(|()| slots.take(None)), [Some(0), Some(1), Some(2)], "the regular slot first");
    assert_eq!(slots.take(None), None, "no more than allowed");
    assert_eq!([0, 1, 2].map(|slot| slots.is_extra(slot)), [false, true, true]);
    slots.submit(2, 1, ms(6), at(0));
    assert_eq!(slots.take(None), None, "the last one was slow");
    slots.submit(0, 1, ms(6), at(0));
    assert_eq!((slots.free(), slots.take(None)), (1, Some(0)));
    slots.submit(1, 1, ms(1), at(0));
    assert_eq!(slots.wanted(at(0)).free_slots, 0, "extra slots are not fetched for");
    assert_eq!(slots.take(Some(0)), None, "an extra slot is no substitute for the bound one");
}

#[test]
fn a_reserved_slot_is_left_to_its_bound_items() {
    let mut slots = Slots::new(2, 0);
    slots.reserve(0);
    assert_eq!(slots.wanted(at(0)), Wanted { max: 1, free_slots: 1 });
    assert_eq!(slots.take(None), Some(1));
    assert_eq!(slots.take(None), None);
    assert_eq!(slots.take(Some(0)), Some(0));
    slots.release(0);
    slots.end_reservation(0);
    assert_eq!(slots.take(None), Some(0));
}

#[test]
fn nothing_starts_while_too_many_results_are_being_stored() {
    let mut slots = Slots::new(1, 0);
    for _ in 0..COMMITTING_MAX {
        let slot = slots.take(None).unwrap();
        slots.submit(slot, 1, ms(1), at(0));
    }
    assert_eq!(slots.take(None), None);
    assert!(slots.committed(1), "this is what everyone waited for");
    assert!(!slots.committed(1), "nobody waits any more");
    assert_eq!(slots.take(None), Some(0));
}

#[test]
fn a_result_above_the_byte_bound_goes_alone() {
    let mut slots = Slots::new(2, 0);
    let slot = slots.take(None).unwrap();
    slots.submit(slot, COMMITTING_BYTES_MAX + 1, ms(1), at(0));
    assert_eq!(slots.take(None), None);
    assert!(slots.committed(COMMITTING_BYTES_MAX + 1));
    assert_eq!(slots.take(None), Some(0));
}

#[test]
fn short_work_is_fetched_ahead_and_long_work_never() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.wanted(at(0)), Wanted { max: 2, free_slots: 2 });
    for _ in 0..5 {
        let slot = slots.take(None).unwrap();
        slots.submit(slot, 1, ms(1), at(100));
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
    let slot = slots.take(None).unwrap();
    slots.submit(slot, 1, ms(11), at(126));
    assert_eq!(slots.wanted(at(126)), Wanted { max: 2, free_slots: 2 }, "the last one took long");
}

#[test]
fn no_more_than_a_bounded_number_is_fetched_ahead() {
    let mut slots = Slots::new(1, 0);
    for _ in 0..PREFETCH_MAX + 10 {
        let slot = slots.take(None).unwrap();
        slots.submit(slot, 0, ms(0), at(0));
        slots.committed(0);
    }
    assert_eq!(slots.wanted(at(0)).max, 1 + PREFETCH_MAX);
}

#[test]
fn one_shared_fetch_waits_and_its_demand_is_read_when_it_is_served() {
    let mut slots = Slots::new(2, 0);
    assert_eq!(slots.begin_shared_fetch(at(0)), Some(Wanted { max: 2, free_slots: 2 }));
    assert_eq!(slots.begin_shared_fetch(at(0)), None, "one waits");
    slots.take(None).unwrap();
    assert_eq!(slots.ask(at(0)), Wanted { max: 1, free_slots: 1 });
    slots.take(None).unwrap();
    assert_eq!(slots.ask(at(0)), Wanted { max: 0, free_slots: 0 });
    slots.end_shared_fetch();
    assert_eq!(slots.begin_shared_fetch(at(0)), None, "nothing is wanted");
}

#[test]
fn a_free_slot_raises_the_demand_of_a_fetch_that_knew_of_none() {
    let mut slots = Slots::new(2, 0);
    assert!(!slots.demand_has_risen(at(0)), "no fetch waits");
    slots.begin_shared_fetch(at(0)).unwrap();
    assert!(!slots.demand_has_risen(at(0)), "it knows of both");
    slots.take(None).unwrap();
    slots.take(None).unwrap();
    assert!(!slots.demand_has_risen(at(0)));
    slots.ask(at(0));
    assert!(!slots.demand_has_risen(at(0)), "none is free");
    slots.release(0);
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
