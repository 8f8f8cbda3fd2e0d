//! Prints the results of commands. A command returns an [`Answer`]; this module formats it.

mod text;

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde_json::Value;

pub(crate) use self::text::{Line, Table, Text, Tone, clean, fold};
use crate::exit::Outcome;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[non_exhaustive]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document, for programs.
    Json,
    /// One id per line, for pipes.
    Ids,
}

/// The result of a command, in every output format.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Answer {
    pub(crate) text: Text,
    pub(crate) json: Value,
    /// The ids that `-o ids` prints.
    pub(crate) ids: Vec<String>,
}

/// Prints answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
    /// Whether payloads are shown whole.
    pub(crate) full: bool,
    colour: bool,
}

impl Output {
    /// Uses colours only on a terminal, and not if `NO_COLOR` is set.
    pub(crate) fn new(format: Format, full: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { format, full, colour: io::stdout().is_terminal() && !refused }
    }

    pub(crate) fn print(&self, answer: &Answer) -> Outcome<()> {
        match self.format {
            Format::Table => self.write(&self.render(&answer.text)),
            Format::Json => self.print_json(&answer.json),
            Format::Ids => self.print_ids(&answer.ids),
        }
    }

    fn print_json(&self, json: &Value) -> Outcome<()> {
        // `{:#}` indents.
        self.write(&format!("{json:#}\n"))
    }

    /// Prints a value on a line of its own, for commands that print while they run.
    pub(crate) fn print_json_line(&self, json: &Value) -> Outcome<()> {
        self.write(&format!("{json}\n"))
    }

    fn print_ids(&self, ids: &[String]) -> Outcome<()> {
        let (broken, ids): (Vec<&String>, Vec<&String>) =
            ids.iter().partition(|id| id.contains(['\n', '\r']));
        self.write(&ids.iter().map(|id| format!("{id}\n")).collect::<String>())?;
        for id in broken {
            note(&format!("left out an id with a line break: {}", clean(id)));
        }
        Ok(())
    }

    /// Renders text for people, with colours if they are on.
    pub(crate) fn render(&self, text: &Text) -> String {
        text.render(self.colour)
    }

    /// Writes text as it is.
    pub(crate) fn write(&self, text: &str) -> Outcome<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// A payload, whole with `--full` and folded otherwise.
    pub(crate) fn payload(&self, text: &str) -> String {
        if self.full { clean(text) } else { fold(text) }
    }
}

/// Prints a note to stderr, which is not part of the output.
#[expect(clippy::print_stderr, reason = "this is a command line")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
