//! The order in which the messages of a claim are delivered (2.1).

use duroxide_core::Timestamp;

use crate::rules::VISIBLE_AT_ONCE;

/// The stored time at which a queued message became visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number; messages are numbered as they arrive.
    pub number: u64,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it is due, or [`VISIBLE_AT_ONCE`].
    pub due_at: Timestamp,
}

/// Sorts the messages of a claim by the time at which each became visible, then by number.
///
/// A message becomes visible when it is enqueued or due, whichever is later. A message counts as enqueued no earlier
/// than those with lower numbers, so that a clock that was set back does not change the order of messages that were
/// visible at once (I15).
pub fn sort_for_delivery<M>(messages: &mut [M], arrival: impl Fn(&M) -> Arrival) {
    if messages.iter().all(|message| arrival(message).due_at == VISIBLE_AT_ONCE) {
        messages.sort_by_key(|message| arrival(message).number);
        return;
    }
    let mut arrivals: Vec<Arrival> = messages.iter().map(&arrival).collect();
    arrivals.sort_unstable_by_key(|arrival| arrival.number);
    let latest = arrivals.iter_mut().fold(Timestamp::ZERO, |latest, arrival| {
        arrival.enqueued_at = arrival.enqueued_at.max(latest);
        arrival.enqueued_at
    });
    let visible_at = |number: u64| {
        let place = arrivals.binary_search_by_key(&number, |arrival| arrival.number);
        let arrival = place.ok().and_then(|place| arrivals.get(place));
        arrival.map_or(latest, |arrival| arrival.enqueued_at.max(arrival.due_at))
    };
    messages.sort_by_cached_key(|message| {
        let number = arrival(message).number;
        (visible_at(number), number)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u64, enqueued_at: u64, due_at: u64) -> Arrival {
        let (enqueued_at, due_at) = (Timestamp::from_millis(enqueued_at), Timestamp::from_millis(due_at));
        Arrival { number, enqueued_at, due_at }
    }

    fn delivered(mut messages: Vec<Arrival>) -> Vec<u64> {
        sort_for_delivery(&mut messages, |message| *message);
        messages.into_iter().map(|message| message.number).collect()
    }

    /// 2.1
    #[test]
    fn the_later_of_arrival_and_due_time_decides_then_the_number() {
        let early_timer = message(1, 10, 20);
        let late_timer = message(2, 10, 40);
        let event_between = message(3, 30, 0);
        let overdue_when_it_came = message(4, 35, 5);
        let at_the_same_time = message(5, 40, 0);
        let messages = vec![event_between, at_the_same_time, overdue_when_it_came, early_timer, late_timer];
        assert_eq!(delivered(messages), [1, 3, 4, 2, 5]);
    }

    /// I15
    #[test]
    fn a_clock_set_back_reorders_nothing_that_was_visible_at_once() {
        assert_eq!(delivered(vec![message(2, 10, 0), message(1, 500, 0)]), [1, 2]);
        assert_eq!(delivered(vec![message(2, 10, 0), message(1, 500, 0), message(3, 10, 20)]), [1, 2, 3]);
        assert_eq!(delivered(vec![message(1, 10, 20), message(2, 500, 0), message(3, 10, 0)]), [1, 2, 3]);
    }
}
