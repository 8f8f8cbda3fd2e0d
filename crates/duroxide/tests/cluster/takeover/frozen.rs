//! A process that was stopped for longer than its leases, and goes on.

use std::time::Duration;

use duroxide::Client;

use crate::{
    schema::Schema,
    takeover::slow::{self, OTHER, SLOW},
};

const LEASE: Duration = Duration::from_millis(1_500);

/// D10, I09, 16.1: a frozen process keeps its connections, so only its leases end. The results of the process that took
/// over count: when the frozen one goes on, its commits are refused.
#[tokio::test]
async fn a_frozen_process_whose_leases_were_taken_over_cannot_commit() {
    let Some(schema) = Schema::new() else { return };
    let client = Client::new(schema.open().await);
    let frozen = slow::start(&schema, SLOW, LEASE);
    slow::begin(&schema, &client).await;
    frozen.stop().await;

    let _other = slow::start(&schema, OTHER, LEASE);
    slow::taken_over(&client).await;

    slow::let_it_end(&schema);
    frozen.resume();
    slow::has_ended(&schema).await;
    slow::assert_refused(&schema, &client).await;
}
