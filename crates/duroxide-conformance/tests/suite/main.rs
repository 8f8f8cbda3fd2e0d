//! The conformance suite on the memory provider, on one that keeps every default body of the contract, and on memory
//! providers that each break one rule.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "the helpers of a test panic as the test does")]

mod damaged_engine;
mod fault;
mod faulty;
mod plain_admin;
mod plain_provider;
mod runner;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use damaged_engine::DamagedEngine;
use duroxide_conformance::provider_validations::ProviderFactory;
use duroxide_provider::{
    Provider,
    memory::{MemoryEngine, MemoryOptions},
};
use duroxide_store::StoreProvider;
use fault::BrokenRule;
use plain_provider::plain_provider;

const ORPHAN_MESSAGE_TTL: Duration = Duration::from_millis(300);

/// Serves a memory engine, and keeps a handle to it to damage its rows in ways that no provider call can.
#[derive(Default)]
struct MemoryFactory {
    engine: Mutex<Option<DamagedEngine>>,
    fault: Option<BrokenRule>,
    plain: bool,
}

impl MemoryFactory {
    fn faulty(fault: BrokenRule) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    fn plain() -> Self {
        Self { plain: true, ..Self::default() }
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
        let provider = StoreProvider::builder(engine).start().expect("the store thread can be started");
        if self.plain { plain_provider(provider) } else { Arc::new(provider) }
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
        // A plain provider does not receive `max_attempts`, so a test cannot observe when it gives up.
        if !self.plain {
            self.engine().enqueue_nonsense(instance);
        }
        !self.plain
    }

    fn orphan_message_ttl(&self) -> Option<Duration> {
        Some(ORPHAN_MESSAGE_TTL)
    }
}

mod memory {
    use super::MemoryFactory;

    duroxide_conformance::conformance_tests!(MemoryFactory::default());
}

mod plain {
    use super::MemoryFactory;

    duroxide_conformance::conformance_tests!(MemoryFactory::plain());
}
