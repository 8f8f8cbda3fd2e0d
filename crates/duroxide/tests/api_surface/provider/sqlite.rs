//! A13, A17.6: the SQLite provider.

use std::{sync::Arc, time::Duration};

use duroxide::providers::{
    Provider, ProviderAdmin, ProviderError,
    sqlite::{SqliteOptions, SqliteProvider, SqliteSynchronous},
};

use crate::bounds;

/// Errors of the constructors convert into both kinds of error that callers use.
async fn constructors() -> Result<[SqliteProvider; 5], Box<dyn std::error::Error + Send + Sync>> {
    Ok([
        SqliteProvider::new("sqlite:path.db", None).await?,
        SqliteProvider::open_existing("sqlite:path.db", None).await?,
        SqliteProvider::open_read_only("sqlite:path.db").await?,
        SqliteProvider::new_in_memory().await?,
        SqliteProvider::new_in_memory_with_options(Some(SqliteOptions::default())).await?,
    ])
}

async fn maintenance(provider: &SqliteProvider) -> Result<String, ProviderError> {
    provider.checkpoint().await?;
    let _bytes: u64 = provider.compact().await?;
    let _content: duroxide_provider::store::StoreSnapshot = provider.snapshot().await?;
    Ok(provider.debug_dump().await)
}

#[test]
fn futures_are_send() {
    bounds::value_is_send(&constructors());
    let _ = |provider: &'static SqliteProvider| bounds::value_is_send(&maintenance(provider));
}

#[test]
fn options_have_the_documented_defaults() {
    bounds::value::<SqliteOptions>();
    let options = SqliteOptions { ..Default::default() };
    assert_eq!(options.orphan_message_ttl, Duration::from_secs(60));
    match options.synchronous {
        SqliteSynchronous::Full => (),
        SqliteSynchronous::Normal => panic!("the default must survive power loss"),
    }
}

#[tokio::test]
async fn the_provider_manages_itself() {
    let provider = SqliteProvider::new_in_memory().await.unwrap();
    assert_eq!(Provider::name(&provider), "sqlite");
    let _: &dyn ProviderAdmin = &provider;
    let shared: Arc<dyn Provider> = Arc::new(provider);
    assert!(shared.as_management_capability().is_some());
}
