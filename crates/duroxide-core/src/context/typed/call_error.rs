//! [`CallError`]: why a typed call or instance failed.

use std::{
    error::Error,
    fmt::{self, Debug, Display},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    DecodeError,
    json::{as_undecodable_input, decode},
};
use crate::{AppErrorKind, ErrorDetails, without_not_retryable};

/// The prefix of the recorded text of a panicked activity. No JSON begins with it. Recorded: it never changes.
pub const ACTIVITY_PANICKED: &str = "activity panicked: ";

/// The prefix of the recorded text of an attempt that ran too long. No JSON begins with it. Recorded: it never
/// changes.
pub const ACTIVITY_ATTEMPT_TIMED_OUT: &str = "timeout: activity attempt timed out after ";

/// Why a typed call failed: the handler's own error `E`, or a failure of the handler or the system.
///
/// Orchestration code gets it from a call, a client from [`Handle::result`]. It can be part of an error of one's own,
/// because it is serializable itself.
///
/// [`Handle::result`]: https://docs.rs/duroxide/latest/duroxide/typed/struct.Handle.html#method.result
///
/// ```
/// # use duroxide_core::typed::CallError;
/// # #[derive(Debug)] enum ChargeError { Declined, NoSuchCard }
/// fn may_ask_again(error: &CallError<ChargeError>) -> bool {
///     match error {
///         CallError::Failed(ChargeError::Declined) => true,
///         CallError::Failed(ChargeError::NoSuchCard) => false,
///         CallError::TimedOut => true,
///         _ => false,
///     }
/// }
/// # assert!(may_ask_again(&CallError::TimedOut));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The handler returned this error.
    Failed(E),
    /// The handler failed with a text that is not the JSON of an `E`: it is not a typed handler, or has another error
    /// type.
    Untyped(String),
    /// The handler panicked with this text.
    Panicked(String),
    /// The call took longer than its `timeout`, or its last attempt longer than its `attempt_timeout`.
    TimedOut,
    /// The child or instance was cancelled, or the activity was asked to stop.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// The handler could not read its input, or its output is not the JSON of the output type.
    Decode(DecodeError),
    /// The input has no JSON form. Nothing was recorded.
    Encode(String),
    /// The handler was started too often without ever ending: it may have killed its process each time.
    ///
    /// Only clients see it. An orchestration whose activity or child is poisoned fails itself.
    Poisoned(ErrorDetails),
    /// The store, the deployment or the engine failed.
    ///
    /// Only clients see it. An orchestration whose activity or child fails this way fails itself.
    System(ErrorDetails),
}

impl<E> CallError<E> {
    /// The handler's own error, if that is why the call failed.
    pub fn failed(&self) -> Option<&E> {
        if let Self::Failed(error) = self { Some(error) } else { None }
    }

    /// Changes the type of the handler's own error.
    pub fn map_failed<F>(self, f: impl FnOnce(E) -> F) -> CallError<F> {
        match self {
            Self::Failed(error) => CallError::Failed(f(error)),
            Self::Untyped(text) => CallError::Untyped(text),
            Self::Panicked(text) => CallError::Panicked(text),
            Self::TimedOut => CallError::TimedOut,
            Self::Cancelled { reason } => CallError::Cancelled { reason },
            Self::Decode(error) => CallError::Decode(error),
            Self::Encode(text) => CallError::Encode(text),
            Self::Poisoned(details) => CallError::Poisoned(details),
            Self::System(details) => CallError::System(details),
        }
    }
}

impl<E: DeserializeOwned> CallError<E> {
    /// The error of a recorded failure, for a caller that expects errors of type `E`.
    pub fn from_details(details: ErrorDetails) -> Self {
        match details {
            ErrorDetails::Application { kind, message, .. } => match kind {
                AppErrorKind::ActivityFailed | AppErrorKind::OrchestrationFailed => Self::from_text(message),
                AppErrorKind::Panicked => Self::Panicked(message),
                AppErrorKind::Cancelled { reason } => Self::Cancelled { reason },
            },
            poison @ ErrorDetails::Poison { .. } => Self::Poisoned(poison),
            system @ (ErrorDetails::Infrastructure { .. } | ErrorDetails::Configuration { .. }) => {
                Self::System(system)
            }
        }
    }

    /// Panics and timeouts of activities have texts only. The text of a typed error is JSON, which begins otherwise, so
    /// none of them is mistaken for another.
    fn from_text(message: String) -> Self {
        let text = without_not_retryable(&message);
        if let Ok(error) = serde_json::from_str(text) {
            Self::Failed(error)
        } else if let Some(panic) = text.strip_prefix(ACTIVITY_PANICKED) {
            Self::Panicked(panic.to_owned())
        } else if text.starts_with(ACTIVITY_ATTEMPT_TIMED_OUT) {
            Self::TimedOut
        } else if let Some(error) = as_undecodable_input(text) {
            Self::Decode(error)
        } else {
            Self::Untyped(message)
        }
    }
}

/// The result of a recorded outcome, for a caller that expects these types.
pub(super) fn typed_outcome<T: DeserializeOwned, E: DeserializeOwned>(
    outcome: Result<String, Box<ErrorDetails>>,
    origin: impl FnOnce() -> String,
) -> Result<T, CallError<E>> {
    match outcome {
        Ok(text) => decode(&text, origin).map_err(CallError::Decode),
        Err(details) => Err(CallError::from_details(*details)),
    }
}

impl<E: Display> Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => Display::fmt(error, f),
            Self::Untyped(text) => f.write_str(text),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Cancelled { reason } => write!(f, "cancelled: {reason}"),
            Self::Decode(error) => Display::fmt(error, f),
            Self::Encode(text) => write!(f, "the input has no JSON form: {text}"),
            Self::Poisoned(details) | Self::System(details) => Display::fmt(details, f),
        }
    }
}

impl<E: Display + Debug> Error for CallError<E> {}

impl<E: Display> From<CallError<E>> for String {
    fn from(error: CallError<E>) -> Self {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::not_retryable;

    fn activity_failed(message: &str) -> ErrorDetails {
        let (kind, message) = (AppErrorKind::ActivityFailed, message.to_owned());
        ErrorDetails::Application { kind, message, retryable: false }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum ChargeError {
        Declined { left: u32 },
    }

    #[test]
    fn a_typed_error_comes_back_as_itself_also_marked() {
        let json = r#"{"Declined":{"left":2}}"#;
        for text in [json.to_owned(), not_retryable(json)] {
            assert_eq!(
                CallError::from_details(activity_failed(&text)),
                CallError::Failed(ChargeError::Declined { left: 2 })
            );
        }
    }

    #[test]
    fn other_failures_are_kept_apart() {
        let of = |text: &str| CallError::<String>::from_details(activity_failed(text));
        assert_eq!(of("no json"), CallError::Untyped("no json".to_owned()));
        assert_eq!(of(&not_retryable("no json")), CallError::Untyped(not_retryable("no json")));
        assert_eq!(of("activity panicked: oh"), CallError::Panicked("oh".to_owned()));
        assert_eq!(of("timeout: activity attempt timed out after 5 ms"), CallError::TimedOut);
        assert_eq!(
            of(&super::super::undecodable_input(&DecodeError::of("why"))),
            CallError::Decode(DecodeError::of("why"))
        );
        // A typed error that says the same is itself, because its JSON is quoted.
        assert_eq!(of("\"activity panicked: oh\""), CallError::Failed("activity panicked: oh".to_owned()));
        assert_eq!(
            CallError::<String>::from_details(ErrorDetails::cancelled("enough")),
            CallError::Cancelled { reason: "enough".to_owned() }
        );
    }

    #[test]
    fn it_can_be_part_of_a_recorded_error() {
        let error: CallError<String> = CallError::Cancelled { reason: "enough".to_owned() };
        let json = serde_json::to_string(&error).unwrap();
        assert_eq!(serde_json::from_str::<CallError<String>>(&json).unwrap(), error);
    }
}
