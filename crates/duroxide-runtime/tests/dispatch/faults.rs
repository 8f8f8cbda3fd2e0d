//! Providers that fail on purpose.
//!
//! [`faulty`] forwards every call, batches and rounds included. [`plain_faulty`] overrides only the required methods,
//! as users' wrappers do, so the runtime uses the default bodies. Both ask [`Faults`] before each call.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex},
};

use duroxide_provider::{
    Provider, ProviderError,
    testing::{FullyIntercepted, Intercept, Intercepted},
};
use tokio::sync::watch;

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Fails with a retryable error, without reaching the store.
    Retryable,
    /// Fails with a permanent error, without reaching the store.
    Permanent,
    /// Panics without reaching the store.
    Panic,
    /// Succeeds in the store, but its answer is lost.
    AnswerLost,
}

type Rule = Box<dyn FnMut(&'static str, u64) -> Option<Fault> + Send>;

/// Which calls fail, and how many were made.
#[derive(Clone)]
pub struct Faults {
    rule: Arc<Mutex<Option<Rule>>>,
    /// Calls by operation: made, and forwarded to the store.
    calls: watch::Sender<BTreeMap<&'static str, (u64, u64)>>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { rule: Arc::default(), calls: watch::Sender::new(BTreeMap::new()) }
    }
}

impl Faults {
    /// Sets the rule for later calls: it receives the operation and the number of the call, counted from 1.
    pub fn inject(&self, rule: impl FnMut(&'static str, u64) -> Option<Fault> + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        *self.rule.lock().unwrap() = None;
    }

    /// How often an operation was called.
    pub fn made(&self, operation: &str) -> u64 {
        self.calls.borrow().get(operation).map_or(0, |calls| calls.0)
    }

    /// How often an operation reached the store.
    pub fn reached(&self, operation: &str) -> u64 {
        self.calls.borrow().get(operation).map_or(0, |calls| calls.1)
    }

    /// Waits until an operation reached the store `times` times.
    pub async fn until_reached(&self, operation: &'static str, times: u64) {
        let mut calls = self.calls.subscribe();
        let enough = |calls: &BTreeMap<&'static str, (u64, u64)>| {
            calls.get(operation).is_some_and(|calls| calls.1 >= times)
        };
        calls.wait_for(enough).await.unwrap();
    }

    fn note_reached(&self, operation: &'static str) {
        self.calls.send_modify(|calls| calls.entry(operation).or_default().1 += 1);
    }
}

impl Intercept for Faults {
    async fn around<T: Send>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ProviderError>> + Send,
    ) -> Result<T, ProviderError> {
        let mut nth = 0;
        self.calls.send_modify(|calls| {
            let calls = calls.entry(operation).or_default();
            calls.0 += 1;
            nth = calls.0;
        });
        let fault = self.rule.lock().unwrap().as_mut().and_then(|rule| rule(operation, nth));
        match fault {
            None => {}
            Some(Fault::Retryable) => return Err(ProviderError::retryable(operation, "injected")),
            Some(Fault::Permanent) => return Err(ProviderError::permanent(operation, "injected")),
            Some(Fault::Panic) => panic!("injected into {operation}"),
            Some(Fault::AnswerLost) => {
                self.note_reached(operation);
                call.await?;
                return Err(ProviderError::retryable(operation, "answer lost"));
            }
        }
        self.note_reached(operation);
        call.await
    }
}

/// A provider with faults that forwards all other calls.
pub fn faulty(inner: Arc<dyn Provider>) -> (Arc<FullyIntercepted<Faults>>, Faults) {
    let faults = Faults::default();
    (FullyIntercepted::new(inner, faults.clone()), faults)
}

/// A provider with faults and the default bodies of all optional methods.
pub fn plain_faulty(inner: Arc<dyn Provider>) -> (Arc<Intercepted<Faults>>, Faults) {
    let faults = Faults::default();
    (Intercepted::new(inner, faults.clone()), faults)
}
