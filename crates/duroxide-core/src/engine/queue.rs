//! Event queues: reads matched with messages by position.
//!
//! The k-th oldest open read of a name is matched with its k-th unread message (10.1). A message becomes read when
//! its read is polled while matched; dropping a read frees its place and loses no message.

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
    /// Names whose first message came since they were last asked for, in order of arrival.
    news: Vec<String>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The code has read it, or tried to.
    was_read: bool,
    /// A message came before.
    has_received: bool,
    /// Open reads, by their event id, which only grows.
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

    /// A message arrived. Returns whom to wake.
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
            self.news.push(name.to_owned());
        }
        waker
    }

    /// Queues that got their first message since the last call and that the code has never read.
    pub(crate) fn take_unheard(&mut self) -> Vec<String> {
        let mut names = std::mem::take(&mut self.news);
        names.retain(|name| self.by_name.get(name).is_some_and(|queue| !queue.was_read));
        names
    }

    /// A read was recorded. `waker` is that of its last poll; it is returned if a message is there already.
    pub(crate) fn open(&mut self, name: &str, event_id: u64, waker: Option<Waker>) -> Option<Waker> {
        let queue = self.queue(name);
        queue.was_read = true;
        queue.reads.push_back(Read { event_id, waker });
        let position = queue.reads.len() - 1;
        if position < queue.unread.len() { queue.waker_at(position) } else { None }
    }

    /// A read is polled.
    pub(crate) fn poll(&mut self, name: &str, event_id: u64, waker: &Waker) -> Poll<String> {
        let queue = self.queue(name);
        let Some(position) = queue.position_of(event_id) else { return Poll::Pending };
        if let Some(message) = queue.unread.remove(position) {
            // Younger reads and younger messages move up together: they stay matched.
            queue.reads.remove(position);
            self.unread_bytes -= message.data.len();
            return Poll::Ready(message.data);
        }
        if let Some(read) = queue.reads.get_mut(position) {
            keep_waker(&mut read.waker, waker);
        }
        Poll::Pending
    }

    /// A read is given up. Younger reads move up, and the last of them that is matched now may be woken.
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
