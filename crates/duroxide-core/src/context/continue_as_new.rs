//! Ending an execution and starting the next one with a fresh history.

use std::future::{Future, pending};

use serde::Serialize;

use super::{OrchestrationContext, encode_or_panic};
use crate::Action;

/// # Continue-as-new
///
/// Ends this execution and starts the next one with a fresh history, so that an endless orchestration stays small.
/// The next execution keeps unread queue messages, the key-value store and the custom status, but no open waits.
impl OrchestrationContext {
    /// Continues as new with this input. The future never resolves.
    #[track_caller]
    pub fn continue_as_new<S: Into<String>>(
        &self,
        input: S,
    ) -> impl Future<Output = Result<String, String>> + use<S> {
        self.continued(input.into(), None)
    }

    /// Continues as new with a typed input. The future never resolves.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the input has no JSON form.
    #[track_caller]
    pub fn continue_as_new_typed<In: Serialize>(
        &self,
        input: &In,
    ) -> impl Future<Output = Result<String, String>> + use<In> {
        self.continued(encode_or_panic(input), None)
    }

    /// Continues as new in the given handler version. The future never resolves.
    #[track_caller]
    pub fn continue_as_new_versioned<V: Into<String>, S: Into<String>>(
        &self,
        version: V,
        input: S,
    ) -> impl Future<Output = Result<String, String>> + use<V, S> {
        self.continued(input.into(), Some(version.into()))
    }

    #[track_caller]
    fn continued(
        &self,
        input: String,
        version: Option<String>,
    ) -> impl Future<Output = Result<String, String>> + use<> {
        self.emit(Action::ContinueAsNew { input, version });
        pending()
    }
}
