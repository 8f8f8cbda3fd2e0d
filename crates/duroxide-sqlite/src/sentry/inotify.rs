//! Linux: a thread that sleeps until the file is written.

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

/// A thread that waits for the system's word. It ends with this.
pub(crate) struct Post {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    inotify: OwnedFd,
    /// Readable when the post is given up.
    end: OwnedFd,
    /// Whether a write will be told that was not told yet.
    watches: AtomicBool,
    tell: TellOfWrite,
}

impl Post {
    pub(super) fn new(tell: TellOfWrite) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            end: eventfd(0, EventfdFlags::CLOEXEC)?,
            watches: AtomicBool::new(false),
            tell,
        });
        let sentry = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("duroxide-sentry".to_owned()).spawn(move || sentry.stand())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has the next write to a file told. Asked again before that, it costs nothing. The file is not opened: closing it
    /// would drop the locks that SQLite holds on it.
    pub(super) fn watch(&self, file: &Path) -> io::Result<()> {
        if self.shared.watches.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let once = WatchFlags::MODIFY | WatchFlags::ONESHOT;
        inotify::add_watch(&self.shared.inotify, file, once).map(|_| ()).map_err(|error| {
            self.shared.watches.store(false, Ordering::Release);
            error.into()
        })
    }
}

impl Shared {
    /// The life of the thread.
    fn stand(&self) {
        while self.wait() {
            if self.was_written() {
                // First, so that whoever hears of it and asks again is not refused.
                self.watches.store(false, Ordering::Release);
                (self.tell)();
            }
        }
    }

    /// Sleeps until there is word. Returns whether the post is still held.
    fn wait(&self) -> bool {
        let mut sources = [&self.inotify, &self.end].map(|source| PollFd::new(source, PollFlags::IN));
        match poll(&mut sources, None) {
            Ok(_) => sources.last().is_some_and(|end| end.revents().is_empty()),
            Err(Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Reads all there is. The end of a watch is told too, and is no write.
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

impl Drop for Post {
    fn drop(&mut self) {
        let ended = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        if let (Ok(_), Some(thread)) = (ended, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post").finish_non_exhaustive()
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

    fn post() -> (Post, mpsc::Receiver<()>) {
        let (tell, told) = mpsc::channel();
        (Post::new(Arc::new(move || tell.send(()).unwrap())).unwrap(), told)
    }

    #[test]
    fn a_write_is_told_once_each_time_someone_asks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = File::create(&path).unwrap();
        let (post, told) = post();
        for _ in 0..3 {
            post.watch(&path).unwrap();
            post.watch(&path).unwrap();
            file.write_all(b"one").unwrap();
            file.write_all(b"two").unwrap();
            told.recv_timeout(SOON).unwrap();
        }
        drop(post);
        assert!(told.try_recv().is_err(), "told more often than asked");
    }

    #[test]
    fn a_missing_file_is_an_error_and_may_be_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (post, told) = post();
        assert_eq!(post.watch(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "").unwrap();
        post.watch(&path).unwrap();
        fs::write(&path, "x").unwrap();
        told.recv_timeout(SOON).unwrap();
    }

    #[test]
    fn a_post_that_is_given_up_ends_its_thread() {
        let (post, told) = post();
        drop(post);
        // The thread held the only other handle.
        assert_eq!(told.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
