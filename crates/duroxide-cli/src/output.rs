//! What commands print. A command says what it found as an [`Answer`]; how that looks is decided here.

mod text;

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde_json::Value;

pub(crate) use self::text::{Line, Table, Text, Tone, clean, fold};
use crate::exit::Outcome;

/// The form of what is printed.
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

/// What a command found, in every form.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Answer {
    pub(crate) text: Text,
    pub(crate) json: Value,
    /// What `-o ids` prints.
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
    /// Colours only a terminal, and not if the user has `NO_COLOR` set.
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
        // The alternate form is indented.
        self.write(&format!("{json:#}\n"))
    }

    /// A value per line, as it is found.
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

    /// Text for people, with colours if they are wanted.
    pub(crate) fn render(&self, text: &Text) -> String {
        text.render(self.colour)
    }

    /// Writes text as it is.
    pub(crate) fn write(&self, text: &str) -> Outcome<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// A payload as the user wants to see it.
    pub(crate) fn payload(&self, text: &str) -> String {
        if self.full { clean(text) } else { fold(text) }
    }
}

/// Tells the user something that belongs to no output.
#[expect(clippy::print_stderr, reason = "this is a command line")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
