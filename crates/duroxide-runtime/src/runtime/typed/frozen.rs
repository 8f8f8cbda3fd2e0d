//! Freezing names, versions and JSON shapes of handlers in a file.

use std::{collections::BTreeMap, error::Error, fmt, fs, io, path::Path};

use duroxide_core::typed::HandlerShapes;
use serde::Serialize;
use serde_json::Value;

use super::{BuildError, Handlers};

/// Set to write the file instead of comparing with it.
const WRITE: &str = "DUROXIDE_FREEZE";

/// The differences between handlers and a file. `Debug` prints the text, so that `unwrap` in a test shows it.
pub struct FrozenError(String);

impl Handlers {
    /// Compares names, versions and JSON shapes of these handlers with a file. It is made for a test, so that a rename or a
    /// changed type fails there and not in a running instance:
    ///
    /// ```no_run
    /// # use duroxide_runtime::typed::Handlers;
    /// # fn handlers() -> Handlers { Handlers::new() }
    /// #[test]
    /// fn handlers_are_what_running_instances_expect() {
    ///     handlers().check_frozen("tests/handlers.json").unwrap();
    /// }
    /// ```
    ///
    /// With the environment variable `DUROXIDE_FREEZE=1` it writes the file instead; commit it. The path is relative to
    /// the folder that the test runs in, which is that of the package.
    ///
    /// The shape of a type is the structure that its deserialization requests: fields with their JSON names, variants,
    /// lists, optional values. It does not show which fields have a default, the format of a string, nor the inside of a
    /// value whose content decides (`any`: an untagged enum, a `serde_json::Value`). A field of such a type, or of one
    /// that refuses the values it is tried with, is `not explored`. Handlers of texts are frozen by name and version.
    ///
    /// # Errors
    /// If the file is missing or differs, with the lines that differ; if it cannot be read or written; if the handlers
    /// cannot be registered together.
    pub fn check_frozen(self, path: impl AsRef<Path>) -> Result<(), FrozenError> {
        let (path, now) = (path.as_ref(), self.describe()?);
        let at = path.display();
        if std::env::var_os(WRITE).is_some() {
            return fs::write(path, now).map_err(|error| FrozenError(format!("cannot write {at}: {error}")));
        }
        match fs::read_to_string(path) {
            Ok(frozen) if frozen == now => Ok(()),
            Ok(frozen) => Err(FrozenError(difference(&at, &frozen, &now))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(FrozenError(format!("{at} does not exist: run the test with {WRITE}=1 to write it")))
            }
            Err(error) => Err(FrozenError(format!("cannot read {at}: {error}"))),
        }
    }

    /// Names, versions and shapes as JSON.
    fn describe(self) -> Result<String, FrozenError> {
        let (activities, orchestrations) = self.build()?;
        let activities =
            activities.each().map(|(name, _, handler)| (name.to_owned(), handler.shapes().into()));
        let orchestrations = orchestrations
            .each()
            .map(|(name, version, handler)| (format!("{name} {version}"), handler.shapes().into()));
        let frozen: BTreeMap<&str, BTreeMap<String, Frozen>> = BTreeMap::from([
            ("activities", activities.collect()),
            ("orchestrations", orchestrations.collect()),
        ]);
        let json = serde_json::to_string_pretty(&frozen).map_err(|error| FrozenError(error.to_string()))?;
        Ok(json + "\n")
    }
}

/// The entry of one handler in the file.
#[derive(Serialize)]
#[serde(untagged)]
enum Frozen {
    Typed(HandlerShapes),
    ByName(&'static str),
}

impl From<Option<HandlerShapes>> for Frozen {
    fn from(shapes: Option<HandlerShapes>) -> Self {
        shapes.map_or(Self::ByName("text"), Self::Typed)
    }
}

/// The lines that only one side has, each under the handler it belongs to.
fn difference(at: &std::path::Display<'_>, frozen: &str, now: &str) -> String {
    let (before, after) = (paths(frozen), paths(now));
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    let lines: Vec<String> = gone.chain(new).collect();
    format!(
        "handlers are not what {at} says:\n{}\nInstances that run expect the lines with -. If none do, run the test with \
         {WRITE}=1.",
        lines.join("\n")
    )
}

/// Every leaf of the description with the keys that lead to it. A file that is no JSON has only its own lines.
fn paths(text: &str) -> Vec<String> {
    fn walk(value: &Value, path: &str, lines: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| walk(value, &format!("{path}{key} / "), lines));
            }
            Value::Array(elements) => elements.iter().for_each(|value| walk(value, path, lines)),
            Value::String(text) => lines.push(format!("{path}{text}")),
            Value::Null | Value::Bool(_) | Value::Number(_) => lines.push(format!("{path}{value}")),
        }
    }
    let mut lines = Vec::new();
    match serde_json::from_str(text) {
        Ok(value) => walk(&value, "", &mut lines),
        Err(_) => lines.extend(text.lines().map(str::to_owned)),
    }
    lines
}

impl From<BuildError> for FrozenError {
    fn from(error: BuildError) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for FrozenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FrozenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for FrozenError {}
