use std::{
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;

/// Between two tries for a lock that another connection holds.
const PAUSE: Duration = Duration::from_micros(200);
/// How long to try before the caller is told that the store is busy.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Waits for locks in short, even steps. SQLite's own `busy_timeout` sleeps longer with every try, and with two busy
/// writers one of them then starves for seconds.
pub(super) fn wait_when_busy(conn: &mut Connection) -> rusqlite::Result<()> {
    let mut began = Instant::now();
    conn.busy_handler(Some(move |tries: i32| {
        if tries == 0 {
            began = Instant::now();
        }
        // Time decides, not the number of tries: a short sleep may take much longer than asked for.
        let go_on = began.elapsed() < WAIT_MAX;
        if go_on {
            thread::sleep(PAUSE);
        }
        go_on
    }))
}
