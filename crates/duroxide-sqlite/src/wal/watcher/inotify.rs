//! Linux: a thread that sleeps in `poll` until inotify reports a write.

use std::{
    fmt, io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use duroxide_provider::store::TellOfWrite;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

/// Room for some events; none of them carries a name.
const EVENTS_BYTES: usize = 1024;

/// Watches one file on a thread, which ends when this is dropped.
pub(crate) struct FileWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    inotify: OwnedFd,
    /// Readable when the watch is dropped.
    end: OwnedFd,
    /// Whether a watch is set that has not reported yet.
    armed: AtomicBool,
    tell: TellOfWrite,
}

impl FileWatch {
    pub(super) fn new(tell: TellOfWrite) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            end: eventfd(0, EventfdFlags::CLOEXEC)?,
            armed: AtomicBool::new(false),
            tell,
        });
        let watched = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("duroxide-wal-watcher".to_owned()).spawn(move || watched.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Reports the next write to a file, once. Armed again before that, it costs nothing. The file is not opened: closing
    /// it would drop the locks that SQLite holds on it.
    pub(super) fn arm(&self, file: &Path) -> io::Result<()> {
        if self.shared.armed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let once = WatchFlags::MODIFY | WatchFlags::ONESHOT;
        inotify::add_watch(&self.shared.inotify, file, once).map(|_| ()).map_err(|error| {
            self.shared.armed.store(false, Ordering::Release);
            error.into()
        })
    }
}

impl Shared {
    /// The thread.
    fn run(&self) {
        while self.wait() {
            if self.was_written() {
                // Taken out first, so that the callback can arm the watch again.
                self.armed.store(false, Ordering::Release);
                (self.tell)();
            }
        }
    }

    /// Sleeps until an event comes. Returns `false` once the watch is dropped.
    fn wait(&self) -> bool {
        let mut sources = [&self.inotify, &self.end].map(|source| PollFd::new(source, PollFlags::IN));
        match poll(&mut sources, None) {
            Ok(_) => sources.last().is_some_and(|end| end.revents().is_empty()),
            Err(Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Reads all events. The end of a one-shot watch is an event too, and no write.
    fn was_written(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut was_written = false;
        while let Ok(event) = events.next() {
            was_written |= event.events().intersects(ReadFlags::MODIFY | ReadFlags::QUEUE_OVERFLOW);
        }
        was_written
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let ended = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        if let (Ok(_), Some(thread)) = (ended, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWatch").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::Write,
        sync::mpsc,
        time::Duration,
    };

    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    fn watch() -> (FileWatch, mpsc::Receiver<()>) {
        let (tell, told) = mpsc::channel();
        (FileWatch::new(Arc::new(move || tell.send(()).unwrap())).unwrap(), told)
    }

    #[test]
    fn a_write_is_reported_once_each_time_the_watch_is_armed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = File::create(&path).unwrap();
        let (watch, told) = watch();
        for _ in 0..3 {
            watch.arm(&path).unwrap();
            watch.arm(&path).unwrap();
            file.write_all(b"one").unwrap();
            file.write_all(b"two").unwrap();
            told.recv_timeout(SOON).unwrap();
        }
        drop(watch);
        assert!(told.try_recv().is_err(), "told more often than asked");
    }

    #[test]
    fn a_missing_file_is_an_error_and_can_be_watched_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (watch, told) = watch();
        assert_eq!(watch.arm(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "").unwrap();
        watch.arm(&path).unwrap();
        fs::write(&path, "x").unwrap();
        told.recv_timeout(SOON).unwrap();
    }

    #[test]
    fn a_dropped_watch_ends_its_thread() {
        let (watch, told) = watch();
        drop(watch);
        // The thread held the only other handle.
        assert_eq!(told.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
