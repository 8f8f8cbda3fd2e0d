mod door;
mod management;
mod wait;

use std::sync::Arc;

use super::*;
use crate::fixture::FakeStore;

fn client_on(store: &Arc<FakeStore>) -> Client {
    Client::new(Arc::clone(store) as Arc<dyn Provider>)
}
