//! [`Activity`] and [`Orchestration`]: the name of a handler, and its types.

use std::{fmt::Display, future::Future};

use serde::{Serialize, de::DeserializeOwned};

use crate::OrchestrationContext;

/// An activity as its callers see it: a name and three types.
///
/// `#[duroxide::activity]` implements it for a type with the name of the function. By hand it looks like this:
///
/// ```
/// use duroxide_core::typed::Activity;
///
/// enum Charge {}
///
/// impl Activity for Charge {
///     const NAME: &'static str = "Charge";
///     type Input = u64;
///     type Output = String;
///     type Error = String;
/// }
/// ```
///
/// Nothing here says how the activity runs, so that a program can call an activity that another program runs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an activity",
    note = "put `#[duroxide::activity]` on the function, or implement `duroxide::Activity` for a type"
)]
pub trait Activity: 'static {
    /// The name under which the activity is registered and recorded.
    const NAME: &'static str;
    /// The input. Several arguments are a tuple; no argument is `()`.
    type Input: Serialize + DeserializeOwned + Send + 'static;
    /// The `Ok` value.
    type Output: Serialize + DeserializeOwned + Send + 'static;
    /// The `Err` value.
    type Error: Serialize + DeserializeOwned + Display + Send + 'static;
}

/// An orchestration as its callers see it: a name, a version and three types.
///
/// `#[duroxide::orchestration]` implements it for a type with the name of the function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an orchestration",
    note = "put `#[duroxide::orchestration]` on the function, or implement `duroxide::Orchestration` for a type"
)]
pub trait Orchestration: 'static {
    /// The name under which the orchestration is registered and recorded.
    const NAME: &'static str;
    /// The version of the handler.
    ///
    /// `Some` registers exactly this version, and calls and starts ask for exactly this version. `None` registers
    /// version 1.0.0, and calls and starts leave the choice to the version policy of the node, which is the latest
    /// version unless it is set.
    const VERSION: Option<&'static str> = None;
    /// The input. Several arguments are a tuple; no argument is `()`.
    type Input: Serialize + DeserializeOwned + Send + 'static;
    /// The `Ok` value.
    type Output: Serialize + DeserializeOwned + Send + 'static;
    /// The `Err` value.
    type Error: Serialize + DeserializeOwned + Display + Send + 'static;
}

/// An orchestration together with its code, which a node registers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no code that a node could run",
    note = "an orchestration that is declared without a body is registered where it has one"
)]
pub trait OrchestrationCode: Orchestration {
    /// Runs the orchestration from its beginning. Called again for every replay.
    fn run(
        ctx: OrchestrationContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;
}

/// The two sides of a `Result`, also behind a type alias.
#[diagnostic::on_unimplemented(
    message = "activities and orchestrations return `Result<Output, Error>`, not `{Self}`",
    label = "not a `Result`"
)]
pub trait Outcome {
    /// The `Ok` side.
    type Output;
    /// The `Err` side.
    type Error;
}

impl<T, E> Outcome for Result<T, E> {
    type Output = T;
    type Error = E;
}
