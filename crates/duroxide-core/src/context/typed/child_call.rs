//! [`ChildCall`]: a call of a sub-orchestration, with its options, that can be awaited.

use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};

use super::{CallError, Orchestration, call_error::typed_outcome, encode};
use crate::{
    DurableFuture, OrchestrationContext,
    engine::{Caller, Value},
};

const OUTPUT: &str = "output of sub-orchestration";

/// A call of a sub-orchestration. It is a future: awaiting it starts the child and waits for its result.
///
/// Like every future it does nothing until it is awaited, joined or selected; [`start`](Self::start) starts the child at
/// once. Dropping it after that, and before it resolved, cancels the child.
#[must_use = "a call does nothing until it is awaited or started"]
pub struct ChildCall<O: Orchestration> {
    state: State<O>,
}

type CallResult<O> = Result<<O as Orchestration>::Output, CallError<<O as Orchestration>::Error>>;

enum State<O: Orchestration> {
    Built(Built),
    Running(DurableFuture<CallResult<O>>),
}

struct Built {
    ctx: OrchestrationContext,
    input: Result<String, String>,
    /// Empty for an automatic id.
    id: String,
    version: Option<String>,
    /// The call in the user's code.
    location: Caller,
}

impl OrchestrationContext {
    /// Calls a sub-orchestration, under an automatic id unless [`id`](ChildCall::id) gives one.
    ///
    /// The typed counterpart of [`schedule_sub_orchestration`](Self::schedule_sub_orchestration).
    #[track_caller]
    pub fn child<O: Orchestration>(&self, input: O::Input) -> ChildCall<O> {
        let version = O::VERSION.map(str::to_owned);
        let location = Location::caller();
        let built = Built { ctx: self.clone(), input: encode(&input), id: String::new(), version, location };
        ChildCall { state: State::Built(built) }
    }
}

impl<O: Orchestration> ChildCall<O> {
    /// Starts the child under this id. An id that begins with `sub::` is refused.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.changed(|built| built.id = id.into())
    }

    /// Starts the child in this version instead of [`Orchestration::VERSION`].
    pub fn version(self, version: impl Into<String>) -> Self {
        self.changed(|built| built.version = Some(version.into()))
    }

    /// Starts the child now, to be awaited later.
    pub fn start(self) -> DurableFuture<CallResult<O>> {
        match self.state {
            State::Built(mut built) => built.start::<O>(),
            State::Running(running) => running,
        }
    }

    /// Changes a call that has not begun. A call that has been polled keeps the options it began with.
    fn changed(mut self, change: impl FnOnce(&mut Built)) -> Self {
        if let State::Built(built) = &mut self.state {
            change(built);
        }
        self
    }
}

impl Built {
    /// Takes the input out, because it may be large. What is left is dropped.
    fn start<O: Orchestration>(&mut self) -> DurableFuture<CallResult<O>> {
        let input = match std::mem::replace(&mut self.input, Ok(String::new())) {
            Ok(input) => input,
            Err(error) => return DurableFuture::known(Value::Fired, |_| Err(CallError::Encode(error))),
        };
        let origin = self.ctx.origin(OUTPUT, O::NAME);
        let convert = move |value: Value| typed_outcome(value.into_outcome(), || origin.to_string());
        let (name, version, id) = (O::NAME.to_owned(), self.version.clone(), self.id.clone());
        self.ctx.call_child(self.location, name, version, id, input, convert)
    }
}

impl<O: Orchestration> Future for ChildCall<O> {
    type Output = CallResult<O>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.state {
                State::Built(built) => self.state = State::Running(built.start::<O>()),
                State::Running(running) => return Pin::new(running).poll(cx),
            }
        }
    }
}

impl<O: Orchestration> fmt::Debug for ChildCall<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildCall").field("name", &O::NAME).finish_non_exhaustive()
    }
}
