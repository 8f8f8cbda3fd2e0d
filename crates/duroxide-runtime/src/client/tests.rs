//! Tests of the client on a fake store.

mod management;
mod validate;
mod wait;

use std::sync::Arc;

use super::*;
use crate::fixture::FakeStore;

fn client_on(store: &Arc<FakeStore>) -> Client {
    Client::new(Arc::clone(store) as Arc<dyn Provider>)
}

/// A client call that could not move between threads could not be spawned.
#[test]
fn calls_can_be_spawned() {
    fn spawnable<T: Send>(_call: T) {}
    let client = client_on(&FakeStore::telling());
    let second = std::time::Duration::from_secs(1);
    spawnable(client.start_orchestration_typed("order", "Order", 1));
    spawnable(client.raise_event_typed("order", "paid", &true));
    spawnable(client.cancel_instance("order", "enough"));
    spawnable(client.wait_for_orchestration_typed::<u32>("order", second));
    spawnable(client.wait_for_status_change("order", 0, second, second));
    spawnable(client.wait_for_kv_value_typed::<u32>("order", "count", second));
    spawnable(client.delete_instance("order", true));
}
