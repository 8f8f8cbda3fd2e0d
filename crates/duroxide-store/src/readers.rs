//! Reads that do not wait for the store thread.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use duroxide_provider::{ProviderError, store::StoreReader};

use crate::{
    submit::{Read, Request, Submitter},
    thread,
};

/// Opens a reader, on the thread that is to use it.
pub(crate) type OpenReader = Box<dyn FnOnce() -> Result<Box<dyn StoreReader>, ProviderError> + Send>;

/// Where reads go: to readers with a thread each, or to the store thread if there are none.
#[derive(Debug)]
pub(crate) enum Readers {
    Threads(ReaderThreads),
    StoreThread(Submitter),
}

/// Readers with a thread each. They end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct ReaderThreads {
    queue: Arc<ReadQueue>,
    threads: Vec<JoinHandle<()>>,
}

/// Reads that wait for a reader. A reader that comes back takes the next one itself; only for one that sleeps somebody
/// has to be woken, and then it is one thread.
#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    state: Mutex<QueueState>,
    handed_in: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    reads: VecDeque<Read>,
    /// How many readers sleep and were not called yet.
    asleep: usize,
    closed: bool,
}

impl Readers {
    /// Hands a read in. If everything has ended it is dropped, and its caller sees that.
    pub(crate) fn submit(&self, read: Read) {
        match self {
            Self::Threads(readers) => readers.queue.push(read),
            Self::StoreThread(submitter) => submitter.send(Request::Read(read)),
        }
    }
}

impl ReaderThreads {
    /// Starts a thread for each reader. All of them are open afterwards.
    pub(crate) fn start(readers: Vec<OpenReader>) -> Result<Self, ProviderError> {
        let mut started = Self::default();
        for (number, open) in readers.into_iter().enumerate() {
            let waiting = Arc::clone(&started.queue);
            let work = move |mut reader: Box<dyn StoreReader>| {
                while let Some(read) = waiting.next() {
                    read.run(&mut *reader);
                }
            };
            started.threads.push(thread::spawn_opening(&format!("duroxide-read-{number}"), open, work)?);
        }
        Ok(started)
    }
}

impl Drop for ReaderThreads {
    fn drop(&mut self) {
        self.queue.close();
        self.threads.drain(..).for_each(thread::join);
    }
}

impl ReadQueue {
    fn push(&self, read: Read) {
        let mut state = self.lock();
        state.reads.push_back(read);
        if state.asleep > 0 {
            state.asleep -= 1;
            drop(state);
            self.handed_in.notify_one();
        }
    }

    /// The next read, as soon as there is one; `None` when the queue is closed and empty.
    fn next(&self) -> Option<Read> {
        let mut state = self.lock();
        loop {
            if let Some(read) = state.reads.pop_front() {
                return Some(read);
            }
            if state.closed {
                return None;
            }
            state.asleep += 1;
            state = self.handed_in.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.handed_in.notify_all();
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use duroxide_provider::memory::MemoryEngine;

    use super::*;

    /// A read of nothing, and where it is told that it was made.
    fn read() -> (Read, tokio::sync::oneshot::Receiver<Result<(), duroxide_provider::store::StoreFailure>>) {
        Read::new("test".into(), |_| Ok(()))
    }

    #[test]
    fn each_read_is_made_once_whoever_sleeps_or_is_busy() {
        let queue = Arc::new(ReadQueue::default());
        let reader = |queue: Arc<ReadQueue>| {
            move || {
                let mut engine = MemoryEngine::default();
                let mut count = 0;
                while let Some(read) = queue.next() {
                    read.run(&mut engine);
                    count += 1;
                }
                count
            }
        };
        let readers = [(); 3].map(|()| thread::spawn(reader(Arc::clone(&queue))));
        // Each round lets the readers fall asleep, or not, as it happens.
        for round in 0..200 {
            let reads: Vec<_> = (0..round % 5).map(|_| read()).collect();
            let (reads, made): (Vec<_>, Vec<_>) = reads.into_iter().unzip();
            reads.into_iter().for_each(|read| queue.push(read));
            made.into_iter().for_each(|made| made.blocking_recv().unwrap().unwrap());
        }
        queue.close();
        let made: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert_eq!(made, 400);
    }

    /// Every submitted read is answered, also when the store is closed meanwhile.
    #[test]
    fn a_closed_queue_is_emptied_first() {
        let queue = ReadQueue::default();
        queue.push(read().0);
        queue.close();
        assert!(queue.next().is_some());
        assert!(queue.next().is_none());
    }
}
