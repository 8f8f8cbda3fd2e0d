//! Sub-orchestrations and detached orchestrations.

use std::panic::Location;

use serde::{Serialize, de::DeserializeOwned};

use super::{OrchestrationContext, encode_or_panic, into_result, into_typed_result};
use crate::{
    Action, CallKind, DurableFuture, ErrorDetails,
    engine::{Caller, Value},
    is_auto_generated_sub_orch_id, is_reserved_root_id,
};

const OUTPUT: &str = "output of sub-orchestration";

/// # Children and detached orchestrations
impl OrchestrationContext {
    /// Calls a child under an automatic id.
    #[track_caller]
    pub fn schedule_sub_orchestration(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_child(Location::caller(), name.into(), None, String::new(), input.into(), into_result)
    }

    /// Calls a child under the given id.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_child(Location::caller(), name.into(), None, instance.into(), input.into(), into_result)
    }

    /// Calls a child in the given version; `None` leaves the choice to the registry's policy.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_child(Location::caller(), name.into(), version, String::new(), input.into(), into_result)
    }

    /// Calls a child in the given version under the given id.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned_with_id(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_child(Location::caller(), name.into(), version, instance.into(), input.into(), into_result)
    }

    /// Calls a child with a typed input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the input has no JSON form.
    #[track_caller]
    pub fn schedule_sub_orchestration_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let origin = self.origin(OUTPUT, &name);
        self.call_child(
            Location::caller(),
            name,
            None,
            String::new(),
            encode_or_panic(input),
            into_typed_result(origin),
        )
    }

    /// Calls a child under the given id with a typed input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the input has no JSON form.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let origin = self.origin(OUTPUT, &name);
        self.call_child(
            Location::caller(),
            name,
            None,
            instance.into(),
            encode_or_panic(input),
            into_typed_result(origin),
        )
    }

    /// Starts another instance without waiting for it. If the id exists already nothing happens.
    ///
    /// # Panics
    /// If the id could be taken for an automatic child id.
    #[track_caller]
    pub fn schedule_orchestration(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        self.detached(name.into(), None, instance.into(), input.into());
    }

    /// Starts another instance with a typed input, without waiting for it.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the id could be taken for an automatic child id, or if the input has no JSON form.
    #[track_caller]
    pub fn schedule_orchestration_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        self.detached(name.into(), None, instance.into(), encode_or_panic(input));
    }

    /// Starts another instance in the given version, without waiting for it.
    ///
    /// # Panics
    /// If the id could be taken for an automatic child id.
    #[track_caller]
    pub fn schedule_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        self.detached(name.into(), version, instance.into(), input.into());
    }

    /// Starts another instance in the given version with a typed input, without waiting for it.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](crate::codec) for what that loses.
    ///
    /// # Panics
    /// If the id could be taken for an automatic child id, or if the input has no JSON form.
    #[track_caller]
    pub fn schedule_orchestration_versioned_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        self.detached(name.into(), version, instance.into(), encode_or_panic(input));
    }

    pub(crate) fn call_child<T>(
        &self,
        location: Caller,
        name: String,
        version: Option<String>,
        instance: String,
        input: String,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        if is_auto_generated_sub_orch_id(&instance) {
            let refused = ErrorDetails::orchestration_failed(format!(
                "sub-orchestration instance id '{instance}' starts with the reserved marker 'sub::', which the \
                 runtime uses to mark auto-generated child ids; use an id that does not begin with it"
            ));
            return DurableFuture::known(Value::failed(refused), convert);
        }
        let action = Action::StartSubOrchestration { scheduling_event_id: 0, name, version, instance, input };
        self.call_at(location, CallKind::Child, "", action, convert)
    }

    #[track_caller]
    pub(crate) fn detached(&self, name: String, version: Option<String>, instance: String, input: String) {
        assert!(
            !is_reserved_root_id(&instance),
            "detached orchestration instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'; \
             root instance ids must not start with it or contain '::sub::'"
        );
        let scheduling_event_id = 0;
        self.emit(Action::StartOrchestrationDetached { scheduling_event_id, name, version, instance, input });
    }
}
