//! Starts, events and queue messages that a caller writes in a transaction of its own.
//!
//! A store has a table `intake`. A caller inserts a row there together with rows of its own, and commits both or
//! neither. The store takes committed rows over in the order of their numbers: see
//! [`Rules::take_in`](crate::rules::Rules::take_in).

use duroxide_core::{
    INITIAL_EXECUTION_ID, TracedInput, WorkItem, is_reserved_root_id,
    limits::{MAX_ADDRESSED_ID_BYTES, MAX_NAME_BYTES, RuntimeLimits},
    reserved_root_id_message,
};
use semver::Version;
use serde::Serialize;

use super::{MessageKind, MessageRow};

/// How many bytes of data the rows of a transaction have. A single row may have more.
pub const INTAKE_BYTES_MAX: usize = 8 << 20;

/// A row of the intake. The caller wrote its texts: [`Self::check`] validates them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntakeRow {
    /// [`Self::START`], [`Self::RAISE`] or [`Self::ENQUEUE`].
    pub kind: String,
    /// The instance to start or to send to.
    pub instance_id: String,
    /// The name of the orchestration, of the event or of the queue.
    pub name: String,
    /// For starts: the version of the handler. Without one, the node that runs the instance chooses.
    pub version: Option<String>,
    /// The input, or the data of the event or message.
    pub data: String,
}

/// A start, event or message that no store takes over. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidIntake {
    message: String,
}

impl IntakeRow {
    /// Starts an instance, unless one with this id exists.
    pub const START: &str = "start";
    /// Raises an external event.
    pub const RAISE: &str = "raise";
    /// Adds a message to a queue of an instance.
    pub const ENQUEUE: &str = "enqueue";

    /// The row of a start.
    ///
    /// # Errors
    /// For an empty, overlong or reserved id, an empty or overlong name, a version that is not a semantic version, and an
    /// oversized input.
    pub fn start(
        instance_id: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<Self, InvalidIntake> {
        let kind = Self::START.to_owned();
        Self { kind, instance_id, name: orchestration, version, data: input }.checked()
    }

    /// The row of an event.
    ///
    /// # Errors
    /// For an empty or overlong id, an overlong name, and oversized data.
    pub fn raise(instance_id: String, event: String, data: String) -> Result<Self, InvalidIntake> {
        let kind = Self::RAISE.to_owned();
        Self { kind, instance_id, name: event, version: None, data }.checked()
    }

    /// The row of a queue message.
    ///
    /// # Errors
    /// For an empty or overlong id, an overlong name, and oversized data.
    pub fn enqueue(instance_id: String, queue: String, data: String) -> Result<Self, InvalidIntake> {
        let kind = Self::ENQUEUE.to_owned();
        Self { kind, instance_id, name: queue, version: None, data }.checked()
    }

    fn checked(self) -> Result<Self, InvalidIntake> {
        self.check().map(|()| self)
    }

    /// Whether a store takes the row over. A client checks the same before it sends.
    ///
    /// # Errors
    /// Validates the row.
    pub fn check(&self) -> Result<(), InvalidIntake> {
        let kind = self.known_kind()?;
        let is_start = kind == Kind::Start;
        let id_bytes_max = if is_start { MAX_NAME_BYTES } else { MAX_ADDRESSED_ID_BYTES };
        check_not_empty("instance id", &self.instance_id)?;
        check_size("instance id", self.instance_id.len(), id_bytes_max)?;
        check_size("name", self.name.len(), MAX_NAME_BYTES)?;
        if let Some(limit) = RuntimeLimits::default().max_payload_bytes {
            check_size("data", self.data.len(), limit)?;
        }
        match kind {
            Kind::Start => self.check_start(),
            Kind::Raise | Kind::Enqueue if self.version.is_some() => {
                Err(invalid("only a start has a version".to_owned()))
            }
            Kind::Raise | Kind::Enqueue => Ok(()),
        }
    }

    fn known_kind(&self) -> Result<Kind, InvalidIntake> {
        match self.kind.as_str() {
            Self::START => Ok(Kind::Start),
            Self::RAISE => Ok(Kind::Raise),
            Self::ENQUEUE => Ok(Kind::Enqueue),
            kind => Err(invalid(format!("'{kind}' is no kind: write start, raise or enqueue"))),
        }
    }

    fn check_start(&self) -> Result<(), InvalidIntake> {
        check_not_empty("orchestration name", &self.name)?;
        if is_reserved_root_id(&self.instance_id) {
            return Err(invalid(reserved_root_id_message(&self.instance_id)));
        }
        let version = self.version.as_deref().map(Version::parse).transpose();
        version.map(drop).map_err(|error| {
            let version = self.version.as_deref().unwrap_or_default();
            invalid(format!("'{version}' is not a semantic version: {error}"))
        })
    }

    /// The message of the row.
    ///
    /// # Errors
    /// See [`Self::check`].
    pub fn message(&self) -> Result<MessageRow, InvalidIntake> {
        self.check()?;
        let (instance, name, data) = (self.instance_id.clone(), self.name.clone(), self.data.clone());
        let item = match self.known_kind()? {
            Kind::Start => WorkItem::StartOrchestration {
                instance,
                orchestration: name,
                input: TracedInput { input: data, context: None }.into_text(),
                version: self.version.clone(),
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                execution_id: INITIAL_EXECUTION_ID,
            },
            Kind::Raise => WorkItem::ExternalRaised { instance, name, data },
            Kind::Enqueue => WorkItem::QueueMessage { instance, name, data },
        };
        MessageRow::new(item, None).map_err(|refusal| invalid(refusal.to_string()))
    }

    /// The kind that a dead letter gets; the row's may be unknown.
    pub(crate) fn message_kind(&self) -> MessageKind {
        match self.known_kind() {
            Ok(Kind::Start) => MessageKind::Start,
            Ok(Kind::Enqueue) => MessageKind::Queue,
            Ok(Kind::Raise) | Err(_) => MessageKind::Other,
        }
    }
}

/// The request of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Raise,
    Enqueue,
}

fn invalid(message: String) -> InvalidIntake {
    InvalidIntake { message }
}

fn check_not_empty(what: &str, text: &str) -> Result<(), InvalidIntake> {
    if text.is_empty() { Err(invalid(format!("{what} is empty"))) } else { Ok(()) }
}

fn check_size(what: &str, size: usize, limit: usize) -> Result<(), InvalidIntake> {
    if size <= limit {
        return Ok(());
    }
    Err(invalid(format!("{what} size ({size} bytes) exceeds limit ({limit} bytes)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(id: &str, name: &str, version: Option<&str>) -> Result<IntakeRow, InvalidIntake> {
        IntakeRow::start(id.to_owned(), name.to_owned(), version.map(str::to_owned), "{}".to_owned())
    }

    #[test]
    fn a_row_that_a_client_would_refuse_is_refused() {
        assert!(start("order-1", "Pay", Some("1.2.3")).is_ok());
        let refused = [
            (start("", "Pay", None), "instance id is empty"),
            (start(&"x".repeat(1_025), "Pay", None), "1025 bytes"),
            (start("order::sub::1", "Pay", None), "reserved"),
            (start("order-1", "", None), "orchestration name is empty"),
            (start("order-1", &"x".repeat(1_025), None), "1025 bytes"),
            (start("order-1", "Pay", Some("latest")), "not a semantic version"),
            (IntakeRow::raise(String::new(), "Paid".into(), "1".into()), "instance id is empty"),
            (IntakeRow::enqueue("a".into(), "q".into(), "x".repeat((16 << 20) + 1)), "exceeds limit"),
        ];
        for (row, text) in refused {
            let error = row.unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        assert!(IntakeRow::raise("x".repeat(4_096), "Paid".into(), "1".into()).is_ok(), "a child");
    }

    #[test]
    fn a_row_written_by_hand_is_checked_when_it_is_read() {
        let row = |kind: &str, version: Option<&str>| IntakeRow {
            kind: kind.to_owned(),
            instance_id: "a".to_owned(),
            name: "b".to_owned(),
            version: version.map(str::to_owned),
            data: String::new(),
        };
        assert!(row("cancel", None).message().unwrap_err().to_string().contains("no kind"));
        assert!(row("raise", Some("1.0.0")).message().is_err());
        assert_eq!(row("start", None).message().unwrap().kind, MessageKind::Start);
        assert_eq!(row("raise", None).message().unwrap().kind, MessageKind::Other);
        assert_eq!(row("enqueue", None).message().unwrap().kind, MessageKind::Queue);
    }
}
