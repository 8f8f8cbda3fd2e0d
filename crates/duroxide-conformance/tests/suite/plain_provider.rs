//! A provider written for the plain contract: every method with a default body keeps it.

use std::{sync::Arc, time::Duration};

use duroxide_provider::{
    Provider, ProviderAdmin,
    testing::{Intercept, Intercepted},
};
use duroxide_store::StoreProvider;

/// What a plain provider does differently: its management is plain too, and a fetch of activities returns at once,
/// whatever it is asked.
pub(crate) struct Plain(pub(crate) Arc<StoreProvider>);

/// A provider that hands on what a provider must have, and nothing else.
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
