//! `cancel`: ends instances with their children.

use std::time::Duration;

use clap::Args;

use super::{
    each::{Done, each},
    message::check_open,
};
use crate::{command::Context, consent::Consent, exit::Outcome, selection::Selection, time::parse_duration};

/// `cancel`
#[derive(Debug, Args)]
pub struct Cancel {
    /// The reason, which the instance gets
    #[arg(long, default_value = "cancelled from the command line")]
    reason: String,
    /// Cancel once more after this time, which bounds the clean-up of an orchestration that subscribes to cancellation
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    deadline: Option<Duration>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    selection: Selection,
}

impl Cancel {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.open(self.consent.access()).await?;
        let ids = self.selection.ids(&store.client, |query| query).await?;
        if self.consent.is_dry_run() {
            return each(&context.out, "looking", &ids, async |id| {
                check_open(&store, id).await?;
                Ok(Done::new("would be cancelled, with its children"))
            })
            .await;
        }
        self.consent.ask(&format!("cancel {} instances", ids.len()))?;
        each(&context.out, "cancelling", &ids, async |id| {
            check_open(&store, id).await?;
            match self.deadline {
                None => store.client.cancel_instance(id, self.reason.as_str()).await?,
                Some(deadline) => {
                    store.client.cancel_instance_with_deadline(id, self.reason.as_str(), deadline).await?;
                }
            }
            Ok(Done::new("cancellation requested"))
        })
        .await
    }
}
