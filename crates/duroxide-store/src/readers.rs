//! Reads that do not wait for the store thread.

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use duroxide_provider::store::StoreReader;

use crate::{
    StoreError,
    submit::{Read, Request, Submitter},
    thread,
};

/// Where reads go: to readers with a thread each, or to the store thread if there are none.
#[derive(Debug)]
pub(crate) enum Readers {
    Threads { reads: Option<mpsc::Sender<Read>>, threads: Vec<JoinHandle<()>> },
    StoreThread(Submitter),
}

impl Readers {
    /// Starts a thread for each reader.
    pub(crate) fn start(
        readers: Vec<Box<dyn StoreReader>>,
        submitter: Submitter,
    ) -> Result<Self, StoreError> {
        if readers.is_empty() {
            return Ok(Self::StoreThread(submitter));
        }
        let (reads, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let mut threads = Vec::new();
        for (number, mut reader) in readers.into_iter().enumerate() {
            let waiting = Arc::clone(&waiting);
            threads.push(thread::spawn(&format!("duroxide-read-{number}"), move || {
                while let Some(read) = next_read(&waiting) {
                    read.run(&mut *reader);
                }
            })?);
        }
        Ok(Self::Threads { reads: Some(reads), threads })
    }

    /// Hands a read in. If everything has ended it is dropped, and its caller sees that.
    pub(crate) fn submit(&self, read: Read) {
        match self {
            Self::Threads { reads, .. } => {
                let _ = reads.as_ref().map(|reads| reads.send(read));
            }
            Self::StoreThread(submitter) => submitter.send(Request::Read(read)),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        if let Self::Threads { reads, threads } = self {
            // Without a sender the threads run out of reads.
            drop(reads.take());
            threads.drain(..).for_each(thread::join);
        }
    }
}

/// One thread waits in the channel; the others wait for the lock around it.
fn next_read(waiting: &Mutex<mpsc::Receiver<Read>>) -> Option<Read> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
