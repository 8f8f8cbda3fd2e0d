//! A standby that becomes the primary while two nodes work.

use duroxide::Client;
use postgres_server::Server;

use crate::{
    faults::{COPIES, Nodes, check},
    fixture::until,
    mix,
    schema::Schema,
};

/// S4.20: the primary answers a commit when its standby has it. It is killed, the standby is promoted, and whoever has both
/// hosts in his connection string goes on there: what was answered is there, nothing is doubled, and nobody helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_has_everything_that_was_answered() {
    let Some(primary) = Server::own() else { return };
    let standby = tokio::task::block_in_place(|| primary.synchronous_standby());
    let ports = format!("{},{}", primary.address().port, standby.address().port);
    let url = format!(
        "host=127.0.0.1,127.0.0.1 port={ports} user=postgres dbname=postgres connect_timeout=2 \
         target_session_attrs=read-write"
    );
    let schema = Schema::on(&primary, &url);
    let admin = schema.admin().await;
    let is_synchronous = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    until("the standby follows", async || !admin.query(is_synchronous, &[]).await.unwrap().is_empty()).await;
    let client = Client::new(schema.open().await);
    mix::start(&client, COPIES).await;
    let nodes = Nodes::start(&schema).await;
    let notes = schema.notes();
    until("some work is done", async || notes.lines().len() >= COPIES * 8).await;
    tokio::task::block_in_place(|| {
        primary.stop_immediately();
        standby.promote();
    });
    check(&schema, &client, nodes).await;
}
