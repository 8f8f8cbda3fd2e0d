//! [`Payload`] and the hook that hides payloads.

use std::{borrow::Cow, fmt, sync::Arc};

/// A payload that is about to be shown.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Payload<'a> {
    /// The instance that the payload belongs to.
    pub instance: &'a str,
    /// The kind of payload.
    pub kind: PayloadKind,
    /// The name of the orchestration, activity, event, queue or key that the payload belongs to.
    pub name: &'a str,
    /// The payload as it is stored.
    pub text: &'a str,
}

/// The kind of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadKind {
    /// The input of an orchestration or an activity.
    Input,
    /// The output of an orchestration, an activity or a step.
    Output,
    /// The text of an error, or the reason of a cancellation.
    Error,
    /// The data of an event or a queue message.
    Message,
    /// A key's value.
    KeyValue,
    /// A custom status.
    CustomStatus,
    /// The stored text of a dead letter.
    DeadLetter,
}

pub(crate) type RedactHook = Arc<dyn Fn(&Payload<'_>) -> Option<String> + Send + Sync>;

/// Applies the program's hook.
#[derive(Clone, Default)]
pub(crate) struct Redact(Option<RedactHook>);

impl Redact {
    pub(crate) fn with(hook: RedactHook) -> Self {
        Self(Some(hook))
    }

    /// Whether the program has set a hook.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// The payload, or its replacement by the hook.
    pub(crate) fn shown<'a>(
        &self,
        instance: &str,
        kind: PayloadKind,
        name: &str,
        text: &'a str,
    ) -> Cow<'a, str> {
        let Some(hook) = &self.0 else { return Cow::Borrowed(text) };
        let replaced = hook(&Payload { instance, kind, name, text });
        replaced.map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redact").field(&self.0.is_some()).finish()
    }
}
