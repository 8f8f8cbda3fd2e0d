//! Reads, and the reader threads, on which reads do not wait for the store thread.

mod shared;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use duroxide_provider::{
    ProviderError,
    store::{FailureClass, StoreFailure, StoreReader, caught},
};
use tokio::sync::oneshot;

use self::shared::{Descriptors, Executions, Statuses};
pub(crate) use self::shared::{ReadResult, SharedRead, Subject};
use crate::{
    log,
    submit::{Request, Submitter},
    thread,
};

/// Opens a reader, on the thread that is to use it.
pub(crate) type OpenReader = Box<dyn FnOnce() -> Result<Box<dyn StoreReader>, ProviderError> + Send>;

/// Where reads go: to readers with a thread each, or to the store thread if there are none.
#[derive(Debug)]
pub(crate) enum Readers {
    Threads(ReaderThreads),
    StoreThread(Arc<Submitter>),
}

/// Readers with a thread each. They end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct ReaderThreads {
    queue: Arc<ReadQueue>,
    threads: Vec<JoinHandle<()>>,
}

/// Reads that wait for a reader. A reader that has finished takes the next read itself; `push` wakes one thread, and only if
/// one sleeps.
#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    state: Mutex<QueueState>,
    submitted: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    reads: VecDeque<Read>,
    /// How many readers sleep and were not notified yet.
    asleep: usize,
    closed: bool,
}

impl QueueState {
    /// The read, joined with all waiting reads that one call can make.
    fn joined_by_others(&mut self, mut read: Read) -> Read {
        if !matches!(read, Read::One(_)) {
            let others = std::mem::take(&mut self.reads).into_iter();
            self.reads = others.filter_map(|other| read.join(other)).collect();
        }
        read
    }
}

impl Readers {
    /// Submits a read. If the store has ended, the read is dropped with its reply channel, which the caller notices.
    pub(crate) fn submit(&self, read: Read) {
        match self {
            Self::Threads(readers) => readers.queue.push(read),
            Self::StoreThread(submitter) => submitter.send(Request::Read(Box::new(read))),
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
                let shared = reader.reads_many_at_once();
                while let Some(read) = waiting.next(shared) {
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
            self.submitted.notify_one();
        }
    }

    /// Waits for the next read; with `shared`, joins all waiting reads that one call can make. `None` when the queue is
    /// closed and empty.
    fn next(&self, shared: bool) -> Option<Read> {
        let mut state = self.lock();
        loop {
            if let Some(read) = state.reads.pop_front() {
                return Some(if shared { state.joined_by_others(read) } else { read });
            }
            if state.closed {
                return None;
            }
            state.asleep += 1;
            state = self.submitted.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.submitted.notify_all();
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read with the callers that wait for it.
pub(crate) enum Read {
    One(Box<RunRead>),
    Statuses(SharedRead<Statuses>),
    Executions(SharedRead<Executions>),
    Descriptors(SharedRead<Descriptors>),
}

/// Reads and sends the result to the caller, or sends the failure.
type RunRead = dyn FnOnce(Result<&mut dyn StoreReader, StoreFailure>) + Send;

impl Read {
    /// A read, and where its result will be.
    pub(crate) fn new<T: Send + 'static>(
        store: Arc<str>,
        read: impl FnOnce(&mut dyn StoreReader) -> Result<T, StoreFailure> + Send + 'static,
    ) -> (Self, ReadResult<T>) {
        let (reply, result) = oneshot::channel();
        let run = Box::new(move |reader: Result<&mut dyn StoreReader, StoreFailure>| {
            // A dropped caller needs no answer.
            if reply.is_closed() {
                return;
            }
            let result = reader.and_then(|reader| caught("read", FailureClass::Permanent, || read(reader)));
            let result = result.inspect_err(|failure| log::panic_in(&store, failure));
            let _ = reply.send(result);
        });
        (Self::One(run), result)
    }

    /// Joins another read into this one. Returns the other if one call cannot make both.
    fn join(&mut self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Statuses(read), Self::Statuses(other)) => read.join(other).map(Self::Statuses),
            (Self::Executions(read), Self::Executions(other)) => read.join(other).map(Self::Executions),
            (Self::Descriptors(read), Self::Descriptors(other)) => read.join(other).map(Self::Descriptors),
            (_, other) => Some(other),
        }
    }

    pub(crate) fn run(self, reader: &mut dyn StoreReader) {
        match self {
            Self::One(run) => run(Ok(reader)),
            Self::Statuses(read) => read.run(reader),
            Self::Executions(read) => read.run(reader),
            Self::Descriptors(read) => read.run(reader),
        }
    }

    pub(crate) fn refuse(self, failure: StoreFailure) {
        match self {
            Self::One(run) => run(Err(failure)),
            Self::Statuses(read) => read.refuse(&failure),
            Self::Executions(read) => read.refuse(&failure),
            Self::Descriptors(read) => read.refuse(&failure),
        }
    }
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use duroxide_provider::{layers::EngineLayer, memory::MemoryEngine, store::StoredDescriptor};

    use super::*;

    /// A store in which an instance cannot be read.
    struct OneUnreadable(MemoryEngine);

    impl EngineLayer for OneUnreadable {
        type Engine = MemoryEngine;

        fn with_engine<T>(&mut self, call: impl FnOnce(&mut MemoryEngine) -> T) -> T {
            call(&mut self.0)
        }

        fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure> {
            if instance == "broken" {
                return Err(StoreFailure::new(FailureClass::Permanent, "unreadable"));
            }
            self.0.descriptor(instance)
        }
    }

    /// An empty read, and the receiver of its answer.
    fn read() -> (Read, oneshot::Receiver<Result<(), StoreFailure>>) {
        Read::new("test".into(), |_| Ok(()))
    }

    #[test]
    fn statuses_are_read_together_and_each_caller_gets_its_own() {
        let queue = ReadQueue::default();
        let mut results = Vec::new();
        for n in 0..Statuses::CALLERS_MAX + 2 {
            let (status, result) = SharedRead::new("test".into(), format!("i{n}"));
            queue.push(Read::Statuses(status));
            results.push(result);
            if n == 1 {
                queue.push(read().0);
                let (load, _) = SharedRead::new("test".into(), ("i".to_owned(), 1));
                queue.push(Read::Executions(load));
            }
        }
        let mut engine = MemoryEngine::default();
        let Some(Read::Statuses(first)) = queue.next(true) else { unreachable!() };
        assert_eq!(first.callers(), Statuses::CALLERS_MAX);
        first.run(&mut engine);
        assert!(matches!(queue.next(true), Some(Read::One(_))), "the others keep their order");
        assert!(matches!(queue.next(true), Some(Read::Executions(_))), "another subject is another read");
        let Some(Read::Statuses(rest)) = queue.next(true) else { unreachable!() };
        assert_eq!(rest.callers(), 2);
        rest.refuse(&StoreFailure::new(FailureClass::Retryable, "closed"));
        let refused = results.split_off(Statuses::CALLERS_MAX);
        assert!(results.into_iter().all(|result| matches!(result.blocking_recv(), Ok(Ok(None)))));
        assert!(refused.into_iter().all(|result| matches!(result.blocking_recv(), Ok(Err(_)))));
    }

    /// Otherwise each caller would wait for the reads of all others, and the other readers would sleep.
    #[test]
    fn reads_are_made_one_by_one_where_many_cost_more_than_one() {
        let queue = ReadQueue::default();
        for n in 0..2 {
            let (status, _) = SharedRead::new("test".into(), format!("i{n}"));
            queue.push(Read::Statuses(status));
        }
        for _ in 0..2 {
            let Some(Read::Statuses(read)) = queue.next(false) else { unreachable!() };
            assert_eq!(read.callers(), 1);
        }
    }

    /// Q1: the damage concerns one instance.
    #[test]
    fn an_unreadable_instance_does_not_fail_the_reads_of_others() {
        let mut engine = OneUnreadable(MemoryEngine::default());
        let (mut read, broken) = SharedRead::<Descriptors>::new("test".into(), "broken".to_owned());
        let (other, sound) = SharedRead::new("test".into(), "sound".to_owned());
        assert!(read.join(other).is_none());
        read.run(&mut engine);
        assert_eq!(broken.blocking_recv().unwrap().unwrap_err().message, "unreadable");
        assert!(matches!(sound.blocking_recv(), Ok(Ok(None))));
    }

    #[test]
    fn each_read_is_made_once_by_a_sleeping_or_a_busy_thread() {
        let queue = Arc::new(ReadQueue::default());
        let reader = |queue: Arc<ReadQueue>| {
            move || {
                let mut engine = MemoryEngine::default();
                let mut count = 0;
                while let Some(read) = queue.next(true) {
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
        assert!(queue.next(true).is_some());
        assert!(queue.next(true).is_none());
    }
}
