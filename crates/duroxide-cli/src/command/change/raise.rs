//! `raise`: an event for an instance that waits for it.

use clap::Args;
use duroxide::{Explanation, Finding};

use super::{
    each::{Done, each},
    message::{Payload, check_open},
};
use crate::{
    command::Context,
    exit::Outcome,
    output::{clean, note},
    selection::read_ids,
    store::Store,
};

/// `raise`
#[derive(Debug, Args)]
pub struct Raise {
    /// The instance; `-` reads ids from stdin, one per line
    instance: String,
    /// The event's name
    event: String,
    #[command(flatten)]
    data: Payload,
}

impl Raise {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let (ids, data) = (read_ids(std::slice::from_ref(&self.instance))?, self.data.read()?);
        let store = context.writer().await?;
        each(&context.out, "raising", &ids, async |id| {
            check_open(&store, id).await?;
            self.warn_if_not_awaited(&store, id).await?;
            store.client.raise_event(id, self.event.as_str(), data.as_str()).await?;
            Ok(Done::new("raised"))
        })
        .await
    }

    /// Warns if the instance does not wait for the event: it would be recorded, and no later wait would receive it.
    async fn warn_if_not_awaited(&self, store: &Store, id: &str) -> Outcome<()> {
        let waits = awaited(&store.client.explain(id).await?);
        if !waits.contains(&self.event) {
            let (id, event) = (clean(id), clean(&self.event));
            let instead = match waits.is_empty() {
                true => "waits for no event now".to_owned(),
                false => format!("waits for {}", clean(&waits.join(", "))),
            };
            note(&format!("warning: '{id}' {instead}: event {event} is lost if no wait for it begins first"));
        }
        Ok(())
    }
}

/// The events that an instance waits for.
fn awaited(explanation: &Explanation) -> Vec<String> {
    let name = |finding: &Finding| {
        let Finding::Event { name, .. } = finding else { return None };
        Some(name.clone())
    };
    explanation.findings.iter().filter_map(name).collect()
}
