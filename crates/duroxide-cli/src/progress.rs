//! A progress bar for long work. It is shown only on a terminal.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use crate::time::short;

const BAR_CHARS: u64 = 24;
/// Interval between two redraws. Redrawing more often would cost time and show nothing.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// A progress bar on the terminal. Dropping this value erases it.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    began: Instant,
    drawn: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, began: Instant::now(), drawn: None, is_terminal: io::stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, done: u64, total: u64) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_INTERVAL);
        if self.is_terminal && is_due {
            self.drawn = Some(Instant::now());
            self.draw(&bar(self.what, done, total, self.began.elapsed()));
        }
    }

    fn draw(&self, text: &str) {
        // A closed terminal is no reason to stop the work.
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            self.draw("");
        }
    }
}

/// `deleting [######------] 50 of 100, 3.1 s left`
fn bar(what: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let done = done.min(total);
    let filled = (done * BAR_CHARS).checked_div(total).unwrap_or(BAR_CHARS);
    let bar: String = (0..BAR_CHARS).map(|at| if at < filled { '#' } else { '-' }).collect();
    // No estimate before the first item is done.
    let left = match u32::try_from(done) {
        Ok(1..) if done < total => {
            let left = elapsed.mul_f64((total - done) as f64 / done as f64);
            format!(", {} left", short(left))
        }
        _ => String::new(),
    };
    format!("{what} [{bar}] {done} of {total}{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_how_much_is_done_and_how_long_it_takes() {
        let after = Duration::from_secs(5);
        assert_eq!(bar("deleting", 0, 4, after), "deleting [------------------------] 0 of 4");
        assert_eq!(bar("deleting", 1, 4, after), "deleting [######------------------] 1 of 4, 15 s left");
        assert_eq!(bar("deleting", 4, 4, after), "deleting [########################] 4 of 4");
        assert_eq!(bar("deleting", 9, 4, after), "deleting [########################] 4 of 4");
        assert_eq!(bar("deleting", 0, 0, after), "deleting [########################] 0 of 0");
    }
}
