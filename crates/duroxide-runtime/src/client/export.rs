//! [`RecordedHistory`]: the history of an execution as a file, to be replayed by tests.

use std::{collections::BTreeMap, fs, io, path::Path};

use duroxide_core::{Event, EventKind, EventRole, KeyValueChange, KvEntry, TracedInput};
use duroxide_provider::ProviderError;
use serde::{Deserialize, Serialize};

use super::{Client, ClientError};

/// The history of one execution with its initial state: everything that a replay needs.
///
/// As JSON it is an object of these fields. `format` is 1; a later format has another number, and this version refuses it
/// or reads it. Events have their stored form, and every version reads older ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedHistory {
    /// The version of this form: [`Self::FORMAT`].
    pub format: u32,
    /// The id of the instance.
    pub instance: String,
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// The orchestration's name.
    pub orchestration: String,
    /// The handler version.
    pub version: String,
    /// The key-value state that earlier executions left.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub key_values: BTreeMap<String, KvEntry>,
    /// The events, from the start on.
    pub events: Vec<Event>,
}

impl RecordedHistory {
    /// The format that is written.
    pub const FORMAT: u32 = 1;

    /// The stored history; `None` if it does not begin with a start.
    pub fn new(events: Vec<Event>, key_values: BTreeMap<String, KvEntry>) -> Option<Self> {
        let first = events.first()?;
        let EventKind::OrchestrationStarted { name, version, .. } = &first.kind else { return None };
        Some(Self {
            format: Self::FORMAT,
            instance: first.instance_id.clone(),
            execution_id: first.execution_id,
            orchestration: name.clone(),
            version: version.clone(),
            key_values,
            events,
        })
    }

    /// Reads the JSON of a history.
    ///
    /// # Errors
    /// If the text is no recorded history, or one of a later format.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        // First, so that the error names a later format instead of its differences.
        let Format { format } = serde_json::from_str(text)?;
        if format != Self::FORMAT {
            let known = Self::FORMAT;
            let message =
                format!("format {format} is not known: this version of duroxide reads format {known}");
            return Err(serde::de::Error::custom(message));
        }
        serde_json::from_str(text)
    }

    /// The JSON, an event per line group, so that a difference of two files can be read.
    ///
    /// # Errors
    /// None in practice: every part has a JSON form.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Writes the JSON to a file, and replaces it if there is one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        fs::write(path, self.to_json()?)
    }
}

impl Client {
    /// The history of an instance's current execution, to be replayed by a test:
    ///
    /// ```no_run
    /// # async fn export(client: duroxide_runtime::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.export_history("order-1").await?.write("tests/histories/order-1.json")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The file contains inputs and results in plain text: check it before you commit it.
    ///
    /// # Errors
    /// `InstanceNotFound`, `ManagementNotAvailable`, or the store's error. A history that cannot be decoded is a permanent
    /// one.
    pub async fn export_history(&self, instance: &str) -> Result<RecordedHistory, ClientError> {
        let admin = self.admin()?;
        loop {
            let execution_id = admin.latest_execution_id(instance).await?;
            let loaded = self.store.load_execution(instance, execution_id).await?;
            if let Some(error) = loaded.history_error {
                return Err(ProviderError::permanent("export_history", error).into());
            }
            let ended = loaded.history.last().is_some_and(|last| matches!(last.kind.role(), EventRole::End));
            // An execution that has ended has left its own changes in the store.
            let key_values = match ended {
                true => self.key_values_before(instance, execution_id).await?,
                false => loaded.kv_snapshot.into_iter().collect(),
            };
            if admin.latest_execution_id(instance).await? != execution_id {
                // The instance continued as new meanwhile, and the key-values may be those of the next execution.
                continue;
            }
            let not_found = ClientError::InstanceNotFound { instance_id: instance.to_owned() };
            return RecordedHistory::new(without_trace(loaded.history), key_values).ok_or(not_found);
        }
    }

    /// The key-value state that the executions before this one left, from their histories. Executions that were pruned
    /// are missing.
    async fn key_values_before(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<BTreeMap<String, KvEntry>, ClientError> {
        let mut entries = BTreeMap::new();
        for earlier in self.admin()?.list_executions(instance).await? {
            if earlier >= execution_id {
                break;
            }
            for event in self.read_execution_history(instance, earlier).await? {
                apply(&mut entries, &event);
            }
        }
        Ok(entries)
    }
}

/// A history with its input as the code gets it.
pub(super) fn without_trace(mut history: Vec<Event>) -> Vec<Event> {
    if let Some(Event { kind: EventKind::OrchestrationStarted { input, .. }, .. }) = history.first_mut() {
        *input = TracedInput::from_text(std::mem::take(input)).input;
    }
    history
}

fn apply(entries: &mut BTreeMap<String, KvEntry>, event: &Event) {
    let EventRole::KeyValues(change) = event.kind.role() else { return };
    match change {
        KeyValueChange::Set { key, value, last_updated_at_ms } => {
            entries.insert(key.to_owned(), KvEntry { value: value.to_owned(), last_updated_at_ms });
        }
        KeyValueChange::Clear { key } => {
            entries.remove(key);
        }
        KeyValueChange::ClearAll => entries.clear(),
    }
}
