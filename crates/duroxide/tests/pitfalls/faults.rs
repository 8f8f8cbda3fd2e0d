//! A provider that fails calls, around a real store.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use duroxide::providers::{Provider, ProviderError};
use tokio::sync::Notify;

use crate::fixture::{
    WAIT_MAX,
    intercept::{FullyIntercepted, Intercept},
};

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Retryable,
    Permanent,
    Panic,
}

type Rule = Box<dyn FnMut(&'static str, u32) -> Option<Fault> + Send>;

/// Decides about each call by its method and its number, and counts those that reach the store.
#[derive(Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Default)]
struct Inner {
    rule: Mutex<Option<Rule>>,
    called: Mutex<BTreeMap<&'static str, u32>>,
    reached: Mutex<BTreeMap<&'static str, u32>>,
    changed: Notify,
}

impl Faults {
    /// The store with faults between it and the runtime.
    pub fn around(&self, store: &Arc<dyn Provider>) -> Arc<dyn Provider> {
        FullyIntercepted::new(Arc::clone(store), self.clone())
    }

    /// From now on `rule` decides about each call. Calls of a method count from 1.
    pub fn inject(&self, rule: impl FnMut(&'static str, u32) -> Option<Fault> + Send + 'static) {
        *self.0.rule.lock().unwrap() = Some(Box::new(rule));
    }

    pub fn heal(&self) {
        *self.0.rule.lock().unwrap() = None;
    }

    /// How many calls of a method the store has answered.
    pub fn reached(&self, method: &str) -> u32 {
        self.0.reached.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// How many calls of a method were made.
    pub fn called(&self, method: &str) -> u32 {
        self.0.called.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// Waits until that many calls of a method were made.
    pub async fn until_called(&self, method: &str, count: u32) {
        let called = async {
            loop {
                let changed = self.0.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if self.called(method) >= count {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(WAIT_MAX, called).await.unwrap_or_else(|_| panic!("too few calls of {method}"));
    }
}

#[async_trait]
impl Intercept for Faults {
    async fn before(&self, method: &'static str) -> Result<(), ProviderError> {
        let number = {
            let mut called = self.0.called.lock().unwrap();
            let number = called.entry(method).or_default();
            *number += 1;
            *number
        };
        self.0.changed.notify_waiters();
        let fault = self.0.rule.lock().unwrap().as_mut().and_then(|rule| rule(method, number));
        match fault {
            None => Ok(()),
            Some(Fault::Retryable) => Err(ProviderError::retryable(method, "injected")),
            Some(Fault::Permanent) => Err(ProviderError::permanent(method, "injected")),
            Some(Fault::Panic) => panic!("injected into {method}"),
        }
    }

    async fn after(&self, method: &'static str) -> Result<(), ProviderError> {
        *self.0.reached.lock().unwrap().entry(method).or_default() += 1;
        Ok(())
    }
}
