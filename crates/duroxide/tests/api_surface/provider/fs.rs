//! S4.29: the provider on plain files.

use duroxide::providers::{
    Provider, ProviderError,
    fs::{FsError, FsOptions, FsProvider},
};

use crate::bounds;

async fn open() -> Result<FsProvider, Box<dyn std::error::Error + Send + Sync>> {
    Ok(FsProvider::open("folder", Some(FsOptions::default().with_sync(false))).await?)
}

async fn reload(provider: &FsProvider) -> Result<(), ProviderError> {
    provider.reload().await
}

#[test]
fn futures_are_send_and_options_have_the_documented_defaults() {
    bounds::value_is_send(&open());
    let _ = |provider: &'static FsProvider| bounds::value_is_send(&reload(provider));
    assert!(FsOptions::default().sync, "the default must survive power loss");
    bounds::error::<FsError>();
}

#[tokio::test]
async fn the_provider_manages_itself() {
    let folder = tempfile::tempdir().unwrap();
    let provider = FsProvider::open(folder.path(), None).await.unwrap();
    assert_eq!(provider.name(), "fs");
    assert!(provider.as_management_capability().is_some());
}
