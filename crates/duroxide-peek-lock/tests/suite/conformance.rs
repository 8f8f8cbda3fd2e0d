//! The conformance suite through the adapter.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use duroxide_conformance::provider_validations::ProviderFactory;
use duroxide_core::Timestamp;
use duroxide_peek_lock::{
    MemoryOptions, PeekLockProvider, QueueItem,
    record::{ActivityRecord, InstanceRecord, InstanceRow, MessageRecord, QueuedMessage},
};
use duroxide_provider::{
    Provider,
    store::{ActivityRow, MessageKind},
};

use crate::table_store::{TableStore, Tables};

const ORPHAN_MESSAGE_TTL: Duration = Duration::from_millis(300);
const NONSENSE: &str = r#"{"Nonsense":1}"#;
/// Larger than all numbers that the provider has assigned by then.
const NUMBER: u64 = 1_000_000;

#[derive(Default)]
struct Factory {
    created: Mutex<Option<(TableStore, Arc<PeekLockProvider>)>>,
}

impl Factory {
    fn store(&self) -> TableStore {
        self.created.lock().unwrap().as_ref().expect("a provider has been created").0.clone()
    }

    /// Changes the tables directly, and makes the provider read them again.
    async fn damage<T>(&self, damage: impl FnOnce(&mut Tables) -> T) -> T {
        let (store, provider) =
            self.created.lock().unwrap().as_ref().cloned().expect("a provider has been created");
        let result = store.with_tables(damage);
        provider.reload().await.expect("the tables can be read");
        result
    }
}

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let store = TableStore::default();
        let options = MemoryOptions { orphan_message_ttl: ORPHAN_MESSAGE_TTL };
        let provider = PeekLockProvider::open(store.clone(), options, "tables", "1").expect("an empty store");
        let provider = Arc::new(provider);
        *self.created.lock().unwrap() = Some((store, Arc::clone(&provider)));
        provider
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.damage(|tables| {
            let events = tables.events.iter_mut().filter(|((id, ..), _)| id == instance);
            events.for_each(|(_, data)| NONSENSE.clone_into(data));
        })
        .await;
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.store().with_tables(|tables| {
            let lock = tables.instances.get(instance).and_then(|record| record.row.lock.clone());
            let is_held = |row: &QueuedMessage| lock.as_ref().is_some_and(|lock| lock.extent.holds(row));
            let counts = tables.items.values().map(|item| match item {
                QueueItem::Message(message) if message.instance == instance => {
                    message.row.attempts + u32::from(is_held(&message.row))
                }
                _ => 0,
            });
            counts.max().unwrap_or_default()
        })
    }

    async fn insert_undecodable_rows(&self, instance: &str) -> bool {
        self.damage(|tables| {
            tables.instances.entry(instance.to_owned()).or_insert_with(|| mailbox(instance));
            for item in [undecodable_message(instance), undecodable_activity(instance)] {
                tables.items.insert(item.id(), item);
            }
        })
        .await;
        true
    }

    fn orphan_message_ttl(&self) -> Option<Duration> {
        Some(ORPHAN_MESSAGE_TTL)
    }
}

fn mailbox(instance: &str) -> InstanceRecord {
    InstanceRecord::of_row(InstanceRow::mailbox(NUMBER, instance, Timestamp::ZERO))
}

fn undecodable_message(instance: &str) -> QueueItem {
    let row = QueuedMessage {
        number: NUMBER,
        due_at: Timestamp::ZERO,
        kind: MessageKind::Other,
        key: None,
        // In the future, so that the message does not become an orphan during the test.
        enqueued_at: Timestamp::from_millis(9_000_000_000_000),
        hidden_until: Timestamp::ZERO,
        attempts: 0,
        mark: None,
        data: NONSENSE.to_owned(),
        item: None,
    };
    QueueItem::Message(MessageRecord { instance: instance.to_owned(), row })
}

fn undecodable_activity(instance: &str) -> QueueItem {
    let row = ActivityRow {
        instance: instance.to_owned(),
        execution_id: 1,
        activity_id: NUMBER,
        name: "Nonsense".to_owned(),
        tag: None,
        session_id: None,
        data: NONSENSE.to_owned(),
        item: None,
    };
    QueueItem::Activity(ActivityRecord::new(NUMBER, row))
}

duroxide_conformance::conformance_tests!(Factory::default());
