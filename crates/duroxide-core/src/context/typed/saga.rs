//! [`Saga`]: steps that are undone in reverse when their scope fails or is cancelled.

mod error;
mod scope;
mod step;

use std::{future::Future, sync::Arc};

use super::Activity;
use crate::{Either2, OrchestrationContext};

pub use error::{NotUndone, SagaCause, SagaError};
pub use step::SagaStep;

use scope::{InScope, Scope};

/// The scope of a saga, which its steps belong to: see [`OrchestrationContext::saga`].
#[derive(Clone, Debug)]
pub struct Saga {
    ctx: OrchestrationContext,
    scope: Arc<Scope>,
}

/// # Sagas
impl OrchestrationContext {
    /// Runs steps that are undone, the last one first, if the scope returns an error or the instance is cancelled.
    ///
    /// A step is an activity with another activity that undoes it. When the scope fails, or when it receives a request to
    /// cancel (see [`cancel_requested`](Self::cancel_requested)), steps that still run are asked to stop, and the saga waits
    /// until they have ended. Then each step that may have done something is undone. The undos are activities like any
    /// other: recorded, retried, and resumed after a crash. Then the saga returns the error.
    ///
    /// * A step that returned an error of its own, or that no worker started, has nothing to undo. A step that was stopped,
    ///   that panicked or that took too long is undone, because it may have done its work: an undo must allow for that.
    /// * An undo that fails for good does not keep the others from running: [`SagaError::not_undone`] has it.
    /// * A second request to cancel, or the deadline given with the first, ends the instance in the middle of its undos.
    /// * A saga inside a saga is part of it: if the outer one fails later, the steps of both are undone.
    ///
    /// ```
    /// # use duroxide_core::{OrchestrationContext, typed::Activity};
    /// # macro_rules! activities { ($($name:ident)*) => { $(
    /// # #[allow(non_camel_case_types)] enum $name {}
    /// # impl Activity for $name {
    /// #     const NAME: &'static str = stringify!($name);
    /// #     type Input = String;
    /// #     type Output = String;
    /// #     type Error = String;
    /// # } )* } }
    /// # activities!(reserve release charge refund);
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let receipt = ctx
    ///         .saga(|saga| async move {
    ///             saga.step::<reserve>(item.clone()).undo_with::<release>(item.clone()).await?;
    ///             saga.step::<charge>(item.clone()).undo_with::<refund>(item).await
    ///         })
    ///         .await?;
    ///     Ok(receipt)
    /// }
    /// ```
    ///
    /// # Errors
    /// The error of the scope, or the request to cancel, once everything is undone.
    pub async fn saga<T, E, Fut>(&self, body: impl FnOnce(Saga) -> Fut) -> Result<T, SagaError<E>>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        let scope = Scope::begin();
        // Held to the end, so that a request which comes while steps are undone does not end the instance.
        let mut cancelled = self.cancel_requested();
        let saga = Saga { ctx: self.clone(), scope: Arc::clone(&scope) };
        let body = InScope::new(Arc::clone(&scope), body(saga));
        let cause = match self.select2(body, &mut cancelled).await {
            Either2::First(Ok(output)) => return Ok(output),
            Either2::First(Err(error)) => SagaCause::Failed(error),
            Either2::Second(reason) => SagaCause::Cancelled { reason },
        };
        let not_undone = scope.undo(self).await;
        Err(SagaError { cause, not_undone })
    }
}

impl Saga {
    /// A step: an activity, which [`undo_with`](SagaStep::undo_with) another one undoes.
    pub fn step<A: Activity>(&self, input: A::Input) -> SagaStep<A> {
        SagaStep::new(self.ctx.clone(), Arc::clone(&self.scope), &input)
    }
}
