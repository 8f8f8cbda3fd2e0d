//! Typed authoring on a real store.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(unreachable_pub, reason = "the fixture is shared with other tests")]
#![cfg(feature = "macros")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod audit;
mod calls;
mod errors;
mod frozen;
mod guard;
mod handles;
mod registration;
mod saga;
mod same_events;
mod steps;
mod values;

use std::sync::Arc;

use duroxide::{
    Client,
    providers::{Provider, sqlite::SqliteProvider},
};

/// A store and a client on it.
async fn store() -> (Arc<dyn Provider>, Client) {
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    (store.clone(), Client::new(store))
}
