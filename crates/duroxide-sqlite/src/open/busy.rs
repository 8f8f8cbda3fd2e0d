use std::{thread, time::Duration};

use rusqlite::Connection;

/// Between two tries for a lock that another connection holds.
const PAUSE: Duration = Duration::from_micros(200);
/// How long to try before the caller is told that the store is busy.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Waits for locks in short, even steps. SQLite's own `busy_timeout` sleeps longer with every try, and with two busy
/// writers one of them then starves for seconds.
pub(super) fn wait_when_busy(conn: &mut Connection) -> rusqlite::Result<()> {
    let tries_max = WAIT_MAX.as_micros() / PAUSE.as_micros();
    conn.busy_handler(Some(move |tries: i32| {
        let go_on = u128::try_from(tries).is_ok_and(|tries| tries < tries_max);
        if go_on {
            thread::sleep(PAUSE);
        }
        go_on
    }))
}
