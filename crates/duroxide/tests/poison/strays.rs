//! B1: messages for an instance that is never started.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client,
    providers::{
        Provider,
        sqlite::{SqliteOptions, SqliteProvider},
    },
};

use crate::{
    fixture::{File, ended, node, notes::Notes, output, until},
    handlers::{activities, options, orchestrations},
};

/// B1, 16.11: strays are never candidates. After their time they are dead letters, and the queue is empty.
#[tokio::test]
async fn strays_become_dead_letters_after_their_time_and_do_not_block() {
    let file = File::new();
    let ttl = SqliteOptions { orphan_message_ttl: Duration::from_secs(1), ..SqliteOptions::default() };
    let store: Arc<dyn Provider> = Arc::new(SqliteProvider::new(&file.url(), Some(ttl)).await.unwrap());
    let client = Client::new(Arc::clone(&store));
    client.cancel_instance("ghost", "x").await.unwrap();
    client.raise_event("ghost", "e", "1").await.unwrap();
    for number in 0..100 {
        client.start_orchestration(format!("i-{number}"), "One", number.to_string()).await.unwrap();
    }
    let notes = Notes::new(file.folder(), "notes");
    let runtime = node(&store, activities(&notes), orchestrations(&notes), options()).await;
    for number in 0..100 {
        assert_eq!(output(ended(&client, &format!("i-{number}")).await), number.to_string());
    }

    let letters = async || client.list_dead_letters(None).await.unwrap();
    until("both are dead letters", async || letters().await.len() >= 2).await;
    for letter in letters().await {
        assert_eq!(letter.reason, "no such instance");
        assert_eq!(
            (letter.instance_id.as_deref(), letter.attempt_count),
            (Some("ghost"), 0),
            "never fetched"
        );
    }
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 0);
    runtime.shutdown(None).await;
    assert_eq!(notes.lines().len(), 100, "each healthy one ran once");
}
