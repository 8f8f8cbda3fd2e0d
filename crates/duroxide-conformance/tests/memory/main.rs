//! The conformance suite on the memory provider, and on memory providers that each break one rule.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "the helpers of a test panic as the test does")]

mod damaged_engine;
mod fault;
mod faulty;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use damaged_engine::DamagedEngine;
use duroxide_conformance::{conformance_tests, provider_validations::ProviderFactory};
use duroxide_provider::{
    Provider,
    memory::{MemoryEngine, MemoryOptions},
};
use duroxide_store::StoreProvider;
use fault::Fault;

const ORPHAN_MESSAGE_TTL: Duration = Duration::from_millis(300);

/// Serves a memory engine, and keeps a handle to it for the damage that no provider call can do.
#[derive(Default)]
struct MemoryFactory {
    engine: Mutex<Option<DamagedEngine>>,
    fault: Option<Fault>,
}

impl MemoryFactory {
    fn faulty(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    fn engine(&self) -> DamagedEngine {
        self.engine.lock().unwrap().clone().expect("a provider has been created")
    }
}

#[async_trait]
impl ProviderFactory for MemoryFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let options = MemoryOptions { orphan_message_ttl: ORPHAN_MESSAGE_TTL };
        let engine = DamagedEngine::new(MemoryEngine::new(options), self.fault);
        *self.engine.lock().unwrap() = Some(engine.clone());
        Arc::new(StoreProvider::builder(engine).start().expect("the store thread can be started"))
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.engine().damage_history(instance);
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.engine().max_attempt_count(instance)
    }

    async fn insert_undecodable_rows(&self, instance: &str) -> bool {
        self.engine().enqueue_nonsense(instance);
        true
    }

    fn orphan_message_ttl(&self) -> Option<Duration> {
        Some(ORPHAN_MESSAGE_TTL)
    }
}

conformance_tests!(MemoryFactory::default());
