//! A provider that hands its calls on must hand on all of them.

use duroxide_provider::{
    Provider,
    testing::{NotingProvider, call_every_admin_method, call_every_method},
};
use duroxide_store::impl_provider_by_delegation;

struct Outer {
    store: NotingProvider,
}

impl_provider_by_delegation!(Outer, store);

/// A method with a default body that is not forwarded would silently be served by the default: slower, or without the
/// store's native behaviour.
#[tokio::test]
async fn every_method_of_the_traits_is_handed_on() {
    let outer = Outer { store: NotingProvider::default() };
    let mut called = call_every_method(&outer).await;
    // The outer type is its own management.
    called.retain(|method| *method != "as_management_capability");
    assert_eq!(outer.store.take_calls(), called);
    let admin = outer.as_management_capability().unwrap();
    let called = call_every_admin_method(admin).await;
    assert_eq!(outer.store.take_calls(), called);
}
