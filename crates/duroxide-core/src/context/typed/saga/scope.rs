//! [`Scope`]: the steps of a saga that have not been undone, and undoing them.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use super::{error::NotUndone, step::Step};
use crate::{
    OrchestrationContext, RetryOptions,
    context::{ActivityRequest, RetryEnd},
};

thread_local! {
    /// The scope whose body is being polled. A saga that begins meanwhile is part of it.
    static CURRENT: RefCell<Option<Arc<Scope>>> = const { RefCell::new(None) };
}

/// The steps of a saga, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Scope {
    steps: Mutex<Vec<Arc<Step>>>,
    outer: Option<Arc<Scope>>,
}

impl Scope {
    pub(super) fn begin() -> Arc<Self> {
        Arc::new(Self { steps: Mutex::default(), outer: CURRENT.with_borrow(Clone::clone) })
    }

    pub(super) fn add(&self, step: Arc<Step>) {
        self.steps().push(step);
    }

    /// Waits until no step runs, then undoes the steps, the last one first. Returns the undos that failed.
    ///
    /// A step stays in the list until it is undone: if this future is dropped, an outer saga undoes the rest.
    pub(super) async fn undo(&self, ctx: &OrchestrationContext) -> Vec<NotUndone> {
        let all = self.steps().clone();
        for step in &all {
            step.ask_to_stop();
        }
        for step in &all {
            poll_fn(|cx| step.poll_end(cx)).await;
        }
        let mut not_undone = Vec::new();
        for step in all.iter().rev() {
            if step.may_have_run()
                && let Some((request, options)) = step.undo.clone()
            {
                let activity = request.name.clone();
                if let Err(error) = undo_one(ctx, request, options).await {
                    not_undone.push(NotUndone { activity, error });
                }
            }
            self.steps().pop();
        }
        not_undone
    }

    fn steps(&self) -> MutexGuard<'_, Vec<Arc<Step>>> {
        // Only pushes, pops and clones happen under the lock, so the list of a poisoned lock is consistent.
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(outer) = &self.outer {
            let left: Vec<_> = self.steps().drain(..).collect();
            outer.steps().extend(left);
        }
    }
}

async fn undo_one(
    ctx: &OrchestrationContext,
    request: ActivityRequest,
    options: RetryOptions,
) -> Result<(), String> {
    let first = ctx.first_attempt(&request, &options);
    match ctx.retry(request, options, first, |call| call, |_| true).await {
        Ok(_) => Ok(()),
        Err(RetryEnd::Failed(details)) => Err(details.display_message()),
        Err(RetryEnd::TimedOut) => Err("timeout: activity timed out".to_owned()),
    }
}

/// The body of a saga. While it is polled, its scope is the current one.
pub(super) struct InScope<F> {
    scope: Arc<Scope>,
    body: Pin<Box<F>>,
}

impl<F> InScope<F> {
    pub(super) fn new(scope: Arc<Scope>, body: F) -> Self {
        Self { scope, body: Box::pin(body) }
    }
}

impl<F: Future> Future for InScope<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _restored = Restore(CURRENT.replace(Some(Arc::clone(&self.scope))));
        self.body.as_mut().poll(cx)
    }
}

/// Restores the previous current scope, also if the body panics.
struct Restore(Option<Arc<Scope>>);

impl Drop for Restore {
    fn drop(&mut self) {
        let ended = CURRENT.replace(self.0.take());
        drop(ended);
    }
}
