//! The conformance suite on PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "this is a test")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use duroxide_conformance::{conformance_tests, provider_validations::ProviderFactory};
use duroxide_postgres::{PostgresOptions, PostgresProvider, SchemaName};
use duroxide_provider::Provider;
use tokio_postgres::{Client, NoTls};

const ORPHAN_MESSAGE_TTL: Duration = Duration::from_millis(300);

const CORRUPT_HISTORY: &str = "UPDATE {s}.history SET data = '{\"Nonsense\":1}'
    WHERE instance = (SELECT number FROM {s}.instance WHERE id = $1)";
/// A lock counts as an attempt of the messages that it holds.
const MAX_ATTEMPT_COUNT: &str =
    "SELECT coalesce(max(attempts + ((CASE extent_kind WHEN 'marked' THEN mark = extent_mark
        ELSE message.number <= extent_up_to AND due_at <= extent_at AND hidden_until <= extent_at END)
        IS TRUE)::int), 0)
    FROM {s}.message JOIN {s}.instance ON instance.number = message.instance WHERE instance.id = $1";

/// Opens a store in a new schema, and damages it with statements of its own.
#[derive(Default)]
struct PostgresFactory {
    options: Mutex<Option<PostgresOptions>>,
}

impl PostgresFactory {
    async fn connect(&self) -> (Client, String) {
        let options = self.options.lock().unwrap().clone().expect("a provider has been created");
        let (client, connection) = options.config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        (client, options.schema.to_string())
    }
}

#[async_trait]
impl ProviderFactory for PostgresFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let server = postgres_server::server().expect("whoever asked for the factory has looked");
        let mut options = PostgresOptions::new(&server.socket_url()).unwrap();
        options.schema = SchemaName::new(&server.fresh_schema()).unwrap();
        options.rules.orphan_message_ttl = ORPHAN_MESSAGE_TTL;
        let provider = Arc::new(PostgresProvider::open(options.clone()).await.unwrap());
        *self.options.lock().unwrap() = Some(options);
        provider
    }

    /// A store lengthens leases that end within four commits, so the disk may stall for a quarter of this.
    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        let (client, schema) = self.connect().await;
        let sql = CORRUPT_HISTORY.replace("{s}", &schema);
        assert!(client.execute(&sql, &[&instance]).await.unwrap() > 0);
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let (client, schema) = self.connect().await;
        let sql = MAX_ATTEMPT_COUNT.replace("{s}", &schema);
        let row = client.query_one(&sql, &[&instance]).await.unwrap();
        u32::try_from(row.get::<_, i64>(0)).unwrap()
    }

    fn orphan_message_ttl(&self) -> Option<Duration> {
        Some(ORPHAN_MESSAGE_TTL)
    }
}

conformance_tests!(if postgres_server::server().is_none() { return } else { PostgresFactory::default() });
