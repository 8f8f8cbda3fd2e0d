//! A5: errors.

use duroxide::{
    AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType,
    providers::{ProviderError, error},
};

use crate::bounds;

/// S1.14.
#[test]
fn error_details_are_plain_serializable_values() {
    bounds::value::<ErrorDetails>();
    bounds::eq::<ErrorDetails>();
    bounds::serde::<ErrorDetails>();
    bounds::value::<PoisonMessageType>();
    bounds::eq::<PoisonMessageType>();
    bounds::serde::<PoisonMessageType>();
    bounds::value::<ConfigErrorKind>();
    bounds::eq::<ConfigErrorKind>();
    bounds::serde::<ConfigErrorKind>();
    bounds::value::<AppErrorKind>();
    bounds::eq::<AppErrorKind>();
    bounds::serde::<AppErrorKind>();
}

/// Every variant with every field; no wildcard, so that a new variant or field shows here. S1.11; S0.22 and S0.49: there
/// is no kind of its own for handlers that are not registered.
fn texts(details: ErrorDetails) -> String {
    match details {
        ErrorDetails::Infrastructure { operation, message, retryable: true | false } => operation + &message,
        ErrorDetails::Configuration { kind, resource, message } => {
            match kind {
                ConfigErrorKind::Nondeterminism | ConfigErrorKind::UnsupportedVersion => (),
            }
            message.unwrap_or(resource)
        }
        ErrorDetails::Application { kind, message, retryable: true | false } => match kind {
            AppErrorKind::ActivityFailed | AppErrorKind::OrchestrationFailed | AppErrorKind::Panicked => {
                message
            }
            AppErrorKind::Cancelled { reason } => reason,
        },
        ErrorDetails::Poison { attempt_count, max_attempts, message_type, message } => {
            let (_, _): (u32, u32) = (attempt_count, max_attempts);
            poisoned(message_type) + &message
        }
    }
}

/// S1.13.
fn poisoned(message_type: PoisonMessageType) -> String {
    match message_type {
        PoisonMessageType::Orchestration { instance, execution_id } => {
            format!("{instance}{execution_id}")
        }
        PoisonMessageType::Activity { instance, execution_id: _, activity_name, activity_id } => {
            format!("{instance}{activity_name}{activity_id}")
        }
        PoisonMessageType::FailedDeserialization { instance, execution_id: _, error } => instance + &error,
    }
}

#[test]
fn error_details_answer_the_documented_questions() {
    let _: fn(&ErrorDetails) -> &'static str = ErrorDetails::category;
    let _: fn(&ErrorDetails) -> bool = ErrorDetails::is_retryable;
    let _: fn(&ErrorDetails) -> String = ErrorDetails::display_message;
    let details = ErrorDetails::Configuration {
        kind: ConfigErrorKind::UnsupportedVersion,
        resource: "r".into(),
        message: None,
    };
    assert_eq!(details.display_message(), "unsupported version in r");
    assert_eq!(texts(details), "r");
    let poison = ErrorDetails::Poison {
        attempt_count: 4,
        max_attempts: 3,
        message_type: PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 1 },
        message: "m".into(),
    };
    assert_eq!(
        (poison.category(), poison.is_retryable()),
        ("poison", false),
        "S1.15, S1.16: nothing is tried again"
    );
}

#[test]
fn provider_errors_say_whether_to_retry() {
    bounds::value::<ProviderError>();
    bounds::eq::<ProviderError>();
    bounds::error::<ProviderError>();
    let _: fn(error::ProviderError) -> ProviderError = |error| error;
    let _: fn(&ProviderError) -> bool = ProviderError::is_retryable;
    let _: fn(&ProviderError) -> ErrorDetails = ProviderError::to_infrastructure_error;
    let built = ProviderError { operation: "op".into(), message: "m".into(), retryable: false };
    assert_eq!(built, ProviderError::permanent("op", String::from("m")));
    assert_eq!(built.to_string(), "op: m");
    assert_eq!(ProviderError::from("m"), ProviderError::retryable("unknown", "m"));
    assert_eq!(ProviderError::from(String::from("m")), ProviderError::retryable("unknown", "m"));
}
