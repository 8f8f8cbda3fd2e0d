//! [`Payload`] and the hook that hides payloads.

use std::{borrow::Cow, fmt, sync::Arc};

/// A payload that is about to be shown.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Payload<'a> {
    /// The instance it belongs to.
    pub instance: &'a str,
    /// What it is.
    pub kind: PayloadKind,
    /// The orchestration, activity, event, queue or key that it belongs to.
    pub name: &'a str,
    /// The payload as it is stored.
    pub text: &'a str,
}

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadKind {
    /// The input of an orchestration or an activity.
    Input,
    /// What an orchestration, an activity or a step returned.
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

    /// Whether anything may be hidden.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// What may be shown of a payload.
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
