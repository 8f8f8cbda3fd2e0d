//! Event queues: reads matched with messages by position.
//!
//! The k-th oldest open read of a name is matched with its k-th unread message (10.1). A message becomes read when
//! its read is polled while matched. Dropping a read frees its position and loses no message.

use std::{
    collections::{BTreeMap, VecDeque},
    task::{Poll, Waker},
};

use super::awaitable::keep_waker;

/// All queues of an execution.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    by_name: BTreeMap<String, Queue>,
    /// Arrival number of the next message, over all names: unread messages are carried in this order.
    next_arrival: u64,
    unread_bytes: usize,
    /// Queues that received their first message since the last [`take_never_read`](Self::take_never_read), by arrival.
    newly_received: Vec<String>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Whether the code has ever read the queue, or waited for a message.
    was_read: bool,
    /// Whether a message has ever arrived.
    has_received: bool,
    /// Open reads, by ascending event id.
    reads: VecDeque<Read>,
    unread: VecDeque<Message>,
}

#[derive(Debug)]
struct Read {
    event_id: u64,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Message {
    arrival: u64,
    data: String,
}

impl Queues {
    /// The names of queues that the code reads, in order.
    pub(crate) fn awaited(&self) -> Vec<String> {
        self.by_name
            .iter()
            .filter(|(_, queue)| !queue.reads.is_empty())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Adds a message. Returns the waker of the read that it is matched with.
    pub(crate) fn deliver(&mut self, name: &str, data: String) -> Option<Waker> {
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        self.unread_bytes += data.len();
        let queue = self.queue(name);
        let first = !std::mem::replace(&mut queue.has_received, true);
        queue.unread.push_back(Message { arrival, data });
        let position = queue.unread.len() - 1;
        let waker = queue.waker_at(position);
        if first {
            self.newly_received.push(name.to_owned());
        }
        waker
    }

    /// The queues that received their first message since the last call and that the code has never read.
    pub(crate) fn take_never_read(&mut self) -> Vec<String> {
        let mut names = std::mem::take(&mut self.newly_received);
        names.retain(|name| self.by_name.get(name).is_some_and(|queue| !queue.was_read));
        names
    }

    /// Adds a recorded read. Returns `waker`, the waker of its last poll, if a message is matched with the read already.
    pub(crate) fn open(&mut self, name: &str, event_id: u64, waker: Option<Waker>) -> Option<Waker> {
        let queue = self.queue(name);
        queue.was_read = true;
        queue.reads.push_back(Read { event_id, waker });
        let position = queue.reads.len() - 1;
        if position < queue.unread.len() { queue.waker_at(position) } else { None }
    }

    /// Polls a read.
    pub(crate) fn poll(&mut self, name: &str, event_id: u64, waker: &Waker) -> Poll<String> {
        let queue = self.queue(name);
        let Some(position) = queue.position_of(event_id) else { return Poll::Pending };
        if let Some(message) = queue.unread.remove(position) {
            // Later reads and later messages move up together and stay matched.
            queue.reads.remove(position);
            self.unread_bytes -= message.data.len();
            return Poll::Ready(message.data);
        }
        if let Some(read) = queue.reads.get_mut(position) {
            keep_waker(&mut read.waker, waker);
        }
        Poll::Pending
    }

    /// Removes a dropped read. Later reads move up. Returns the waker of the last one that is matched now.
    pub(crate) fn close(&mut self, name: &str, event_id: u64) -> Option<Waker> {
        let queue = self.queue(name);
        let position = queue.position_of(event_id)?;
        queue.reads.remove(position);
        let last_matched = queue.unread.len().checked_sub(1)?;
        if position <= last_matched { queue.waker_at(last_matched) } else { None }
    }

    /// Unread messages (name, data) of all queues, in order of arrival.
    pub(crate) fn unread(&self) -> Vec<(String, String)> {
        let mut messages: Vec<_> = self
            .by_name
            .iter()
            .flat_map(|(name, queue)| queue.unread.iter().map(move |message| (message, name)))
            .collect();
        messages.sort_by_key(|(message, _)| message.arrival);
        messages.into_iter().map(|(message, name)| (name.clone(), message.data.clone())).collect()
    }

    /// Bytes of all unread messages.
    pub(crate) fn unread_bytes(&self) -> usize {
        self.unread_bytes
    }

    /// Event ids of open reads, ascending.
    pub(crate) fn open_reads(&self) -> Vec<u64> {
        let mut ids: Vec<u64> =
            self.by_name.values().flat_map(|queue| queue.reads.iter().map(|read| read.event_id)).collect();
        ids.sort_unstable();
        ids
    }

    fn queue(&mut self, name: &str) -> &mut Queue {
        self.by_name.entry(name.to_owned()).or_default()
    }
}

impl Queue {
    fn position_of(&self, event_id: u64) -> Option<usize> {
        self.reads.binary_search_by_key(&event_id, |read| read.event_id).ok()
    }

    fn waker_at(&mut self, position: usize) -> Option<Waker> {
        self.reads.get_mut(position).and_then(|read| read.waker.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(queues: &mut Queues, event_id: u64) -> Option<String> {
        match queues.poll("q", event_id, Waker::noop()) {
            Poll::Ready(data) => Some(data),
            Poll::Pending => None,
        }
    }

    /// B26: an older read that is held keeps its message, and gives it back when it is dropped.
    #[test]
    fn a_held_read_keeps_its_place_and_a_dropped_one_loses_nothing() {
        let mut queues = Queues::default();
        queues.open("q", 2, None);
        queues.open("q", 3, None);
        queues.deliver("q", "m1".into());
        queues.deliver("q", "m2".into());
        assert_eq!(poll(&mut queues, 3).as_deref(), Some("m2"));
        queues.close("q", 2);
        queues.open("q", 4, None);
        queues.open("q", 5, None);
        assert_eq!(poll(&mut queues, 4).as_deref(), Some("m1"));
        assert_eq!(poll(&mut queues, 5), None);
    }

    #[test]
    fn a_read_that_moves_up_to_a_message_is_woken() {
        let mut queues = Queues::default();
        queues.open("q", 2, None);
        queues.open("q", 3, Some(Waker::noop().clone()));
        queues.deliver("q", "m1".into());
        assert!(queues.close("q", 2).is_some());
        assert_eq!(poll(&mut queues, 3).as_deref(), Some("m1"));
    }

    /// 10.1: only the read that a change has given a message is woken.
    #[test]
    fn a_read_is_woken_exactly_when_it_gets_a_message() {
        let waker = || Some(Waker::noop().clone());
        let mut queues = Queues::default();
        assert!(queues.open("q", 2, waker()).is_none(), "no message yet");
        assert!(queues.open("q", 3, waker()).is_none());
        assert!(queues.open("q", 4, waker()).is_none());
        assert!(queues.deliver("other", "m".into()).is_none());
        assert!(queues.deliver("q", "m1".into()).is_some(), "the oldest read");
        assert!(queues.close("q", 4).is_none(), "a read without a message changes nothing for the others");
        assert!(queues.deliver("q", "m2".into()).is_some(), "the second read");
        assert!(queues.deliver("q", "m3".into()).is_none(), "nobody waits for it");
        assert!(queues.open("q", 5, waker()).is_some(), "its message is there");
        assert_eq!(queues.open_reads(), [2, 3, 5]);
        assert!(queues.close("q", 9).is_none(), "unknown");
        assert_eq!(poll(&mut queues, 9), None, "unknown");
        assert_eq!([2, 3, 5].map(|read| poll(&mut queues, read).unwrap()), ["m1", "m2", "m3"]);
        assert!(queues.open("q", 6, waker()).is_none());
        assert!(queues.close("q", 6).is_none(), "there is no message to move up to");
    }

    #[test]
    fn open_reads_come_in_the_order_of_their_events() {
        let mut queues = Queues::default();
        for (name, event_id) in [("b", 2), ("a", 3), ("b", 4)] {
            queues.open(name, event_id, None);
        }
        assert_eq!(queues.open_reads(), [2, 3, 4]);
    }

    #[test]
    fn unread_messages_keep_the_order_of_arrival_over_all_names() {
        let mut queues = Queues::default();
        for (name, data) in [("b", "1"), ("a", "2"), ("b", "3")] {
            queues.deliver(name, data.into());
        }
        let expected = [("b", "1"), ("a", "2"), ("b", "3")].map(|(n, d)| (n.to_owned(), d.to_owned()));
        assert_eq!(queues.unread(), expected);
    }
}
