//! Waiting for the file's write lock.

use std::{
    cell::Cell,
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;

/// Between two tries for a lock that another connection holds.
const PAUSE: Duration = Duration::from_micros(200);
/// How long to retry before the caller gets a busy error.
const WAIT_MAX: Duration = Duration::from_secs(5);

thread_local! {
    /// When the lock that this thread waits for was first tried. SQLite calls the handler on the thread that uses the
    /// connection, and a thread waits for one lock at a time.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Waits for locks in short, even steps. SQLite's own `busy_timeout` sleeps longer with every try, and with two busy
/// writers one of them then starves for seconds.
///
/// The handler is a function pointer, not a closure, because older versions of rusqlite take nothing else.
pub(super) fn wait_when_busy(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.busy_handler(Some(pause as fn(i32) -> bool))
}

/// Returns whether to try once more.
fn pause(tries: i32) -> bool {
    if tries == 0 {
        BEGAN.set(Some(Instant::now()));
    }
    // Time decides, not the number of tries: a short sleep may take much longer than asked for.
    let go_on = BEGAN.get().is_some_and(|began| began.elapsed() < WAIT_MAX);
    if go_on {
        thread::sleep(PAUSE);
    }
    go_on
}
