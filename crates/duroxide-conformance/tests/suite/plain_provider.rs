//! A provider written for the plain contract: every method with a default body keeps it.

use std::{sync::Arc, time::Duration};

use duroxide_provider::{
    Provider, ProviderAdmin,
    testing::{Intercept, Intercepted},
};
use duroxide_store::StoreProvider;

/// Restricts a provider to the plain contract: plain management calls, and fetches of activities that return at once
/// with any poll timeout.
pub(crate) struct Plain(pub(crate) Arc<StoreProvider>);

/// A provider that forwards only the required methods of the contract.
pub(crate) fn plain_provider(store: StoreProvider) -> Arc<Intercepted<Plain>> {
    let store = Arc::new(store);
    Intercepted::new(Arc::clone(&store) as Arc<dyn Provider>, Plain(store))
}

impl Intercept for Plain {
    fn management<'a>(&'a self, _store: &'a dyn Provider) -> Option<&'a dyn ProviderAdmin> {
        Some(self)
    }

    fn work_poll_timeout(&self, _poll_timeout: Duration) -> Duration {
        Duration::ZERO
    }
}
