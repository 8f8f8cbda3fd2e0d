//! Screens that replace each other on a terminal, and follow each other elsewhere.

use std::io::{self, IsTerminal as _};

use crate::{
    exit::Outcome,
    output::{Format, Output, Text},
};

/// Switches to the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Shows screens. Dropping this value restores the content of the terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    out: Output,
    is_screen: bool,
}

impl Terminal {
    pub(super) fn enter(out: Output) -> Self {
        let is_screen = io::stdout().is_terminal() && out.format == Format::Table;
        if is_screen {
            // If the terminal is gone, the next write reports it.
            let _ = out.write(ENTER);
        }
        Self { out, is_screen }
    }

    pub(super) fn show(&self, picture: &Text) -> Outcome<()> {
        if !self.is_screen {
            return self.out.write(&format!("{}\n", self.out.render(picture)));
        }
        let (width, height) = size();
        // Leaves the last line empty, so that nothing scrolls.
        let text = self.out.render(&picture.cut(width, height.saturating_sub(1)));
        self.out.write(&format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\r\n")))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_screen {
            let _ = self.out.write(LEAVE);
        }
    }
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
        && size.ws_col > 0
    {
        return (size.ws_col.into(), size.ws_row.into());
    }
    (100, 40)
}
