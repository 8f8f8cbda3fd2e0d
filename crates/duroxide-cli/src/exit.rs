//! How a command ends: exit codes that scripts can rely on, and errors that say what to do next.

use std::{fmt, io, process::ExitCode};

use duroxide::{ClientError, providers::ProviderError};

use crate::output::clean;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// 0: the command did what it was asked to do.
    Done,
    /// 1: the command failed, or a check found a problem.
    Failed,
    /// 2: the command line is wrong.
    Usage,
    /// 3: there is no such store, instance, execution or dead letter.
    NotFound,
    /// 4: the command was refused, and nothing was changed: no consent, still running, exists already.
    Refused,
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Refused => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command failed or was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    /// What to do next.
    advice: Option<String>,
}

/// The result of a command.
pub(crate) type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), advice: None }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    pub(crate) fn no_instance(id: &str) -> Self {
        Self::not_found(format!("there is no instance '{id}' in this store"))
            .advise("`list --prefix …` shows the ids; `list --status pending` those that no node has begun")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A message may quote ids and payloads, which are untrusted.
        let message: Vec<String> = self.message.lines().map(clean).collect();
        f.write_str(&message.join("\n"))?;
        match &self.advice {
            Some(advice) => write!(f, "\n  {advice}"),
            None => Ok(()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let text = error.to_string();
        match error {
            ClientError::Provider(error) => error.into(),
            ClientError::ManagementNotAvailable => Self::failed(text),
            ClientError::InvalidInput { message } => Self::usage(message),
            ClientError::Timeout => Self::failed("it did not happen in time")
                .advise("`explain` says what the instance waits for; `--timeout` waits longer"),
            ClientError::InstanceStillRunning { instance_id } => {
                Self::refused(format!("instance '{instance_id}' is still running"))
                    .advise("cancel it first, or add --force to delete it as it is")
            }
            ClientError::CannotDeleteSubOrchestration { instance_id } => {
                Self::refused(format!("instance '{instance_id}' is a child, which is deleted with its root"))
                    .advise("`show` names its parent; delete the root instead")
            }
            ClientError::InstanceNotFound { instance_id } => Self::no_instance(&instance_id),
        }
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        let failure = Self::failed(format!("the store failed: {error}"));
        match error.is_retryable() {
            true => failure.advise("this may pass: try again"),
            false => failure,
        }
    }
}

/// A reader that has seen enough, such as `head`, closes the pipe. That is not a failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
        if is_closed { Self::new(Exit::Done, "") } else { Self::failed(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_number() {
        let all = [Exit::Done, Exit::Failed, Exit::Usage, Exit::NotFound, Exit::Refused];
        assert_eq!(all.map(Exit::code), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn errors_of_a_client_say_what_to_do() {
        let instance_id = "order-1".to_owned();
        for (error, exit, advice) in [
            (ClientError::InstanceNotFound { instance_id: instance_id.clone() }, Exit::NotFound, "list"),
            (
                ClientError::InstanceStillRunning { instance_id: instance_id.clone() },
                Exit::Refused,
                "--force",
            ),
            (ClientError::CannotDeleteSubOrchestration { instance_id }, Exit::Refused, "root"),
            (ClientError::Timeout, Exit::Failed, "explain"),
            (ProviderError::retryable("read", "busy").into(), Exit::Failed, "try again"),
            (ClientError::InvalidInput { message: "an id is empty".to_owned() }, Exit::Usage, "empty"),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.exit, exit, "{failure}");
            assert!(failure.to_string().contains(advice), "{failure}");
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit, Exit::Done);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::PermissionDenied)).exit, Exit::Failed);
    }
}
