//! `prune`: old executions of instances that continue as new.

use clap::Args;
use duroxide::PruneOptions;
use serde_json::json;

use super::each::{Done, each};
use crate::{
    command::Context, consent::Consent, exit::Outcome, selection::Selection, store::Store, time::Moment,
};

/// `prune`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct Prune {
    /// Keep this many of the newest executions of each instance
    #[arg(long, value_name = "NUMBER", group = "which")]
    keep_last: Option<u32>,
    /// Remove only executions that ended before this time, or longer ago than this age
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, group = "which")]
    ended_before: Option<Moment>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    selection: Selection,
}

impl Prune {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.open(self.consent.access()).await?;
        let ids = self.selection.ids(&store.client, |query| query).await?;
        if self.consent.is_dry_run() {
            return each(&context.out, "looking", &ids, async |id| look(&store, id).await).await;
        }
        self.consent.ask(&format!("prune {} instances", ids.len()))?;
        let completed_before = self.ended_before.map(|at| at.0);
        each(&context.out, "pruning", &ids, async |id| {
            store.begun_instance(id).await?;
            let options = PruneOptions { keep_last: self.keep_last, completed_before };
            let pruned = store.client.prune_executions(id, options).await?;
            Ok(Done {
                text: format!(
                    "removed {} executions with {} events",
                    pruned.executions_deleted, pruned.events_deleted
                ),
                json: json!({ "executions": pruned.executions_deleted, "events": pruned.events_deleted }),
            })
        })
        .await
    }
}

/// Counts the executions that a prune would consider. The store decides which of them it removes.
async fn look(store: &Store, id: &str) -> Outcome<Done> {
    store.begun_instance(id).await?;
    let executions = store.client.list_executions(id).await?.len();
    let old = executions.saturating_sub(1);
    Ok(Done {
        text: format!("has {old} executions before the current one"),
        json: json!({ "old_executions": old }),
    })
}
