//! `enqueue`: a message for an event queue of an instance.

use clap::Args;

use super::{
    each::{Done, each},
    message::{Payload, check_open},
};
use crate::{command::Context, exit::Outcome, selection::read_ids};

/// `enqueue`
#[derive(Debug, Args)]
pub struct Enqueue {
    /// The instance; `-` reads ids from stdin, one per line
    instance: String,
    /// The queue's name
    queue: String,
    #[command(flatten)]
    data: Payload,
}

impl Enqueue {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let (ids, data) = (read_ids(std::slice::from_ref(&self.instance))?, self.data.read()?);
        let store = context.writer().await?;
        each(&context.out, "enqueueing", &ids, async |id| {
            check_open(&store, id).await?;
            store.client.enqueue_event(id, self.queue.as_str(), data.as_str()).await?;
            Ok(Done::new("enqueued"))
        })
        .await
    }
}
