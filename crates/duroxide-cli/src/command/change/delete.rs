//! `delete`: root instances with their children.

use clap::Args;
use duroxide::{DeleteInstanceResult, InstanceQuery};
use serde_json::json;

use super::each::{Done, each};
use crate::{
    command::Context,
    consent::Consent,
    exit::{Failure, Outcome},
    selection::Selection,
    store::Store,
};

/// `delete`
#[derive(Debug, Args)]
pub struct Delete {
    /// Delete running instances too
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    selection: Selection,
}

impl Delete {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.open(self.consent.access()).await?;
        // Only roots, because children are deleted with their roots.
        let ids = self.selection.ids(&store.client, InstanceQuery::roots_only).await?;
        if self.consent.is_dry_run() {
            return each(&context.out, "looking", &ids, async |id| self.look(&store, id).await).await;
        }
        self.consent.ask(&format!("delete {} instances with their children", ids.len()))?;
        each(&context.out, "deleting", &ids, async |id| {
            store.begun_instance(id).await?;
            let deleted = store.client.delete_instance(id, self.force).await?;
            Ok(done(&deleted))
        })
        .await
    }

    /// Shows the counts that a delete would remove, or why it would be refused.
    async fn look(&self, store: &Store, id: &str) -> Outcome<Done> {
        let info = store.begun_instance(id).await?;
        if let Some(parent) = info.parent_instance_id {
            return Err(Failure::refused(format!("instance '{id}' is a child of '{parent}'"))
                .advise("a child is deleted with its root"));
        }
        let size = store.client.get_instance_tree(id).await?.size();
        if info.status == "Running" && !self.force {
            return Err(Failure::refused(format!("instance '{id}' is still running"))
                .advise("cancel it first, or add --force to delete it as it is"));
        }
        let children = size.saturating_sub(1);
        Ok(Done {
            text: format!("would be deleted ({}, {children} descendants)", info.status),
            json: json!({ "status": info.status, "descendants": children }),
        })
    }
}

fn done(deleted: &DeleteInstanceResult) -> Done {
    let DeleteInstanceResult {
        instances_deleted,
        executions_deleted,
        events_deleted,
        queue_messages_deleted,
    } = deleted;
    Done {
        text: format!("deleted: {instances_deleted} instances, {events_deleted} events"),
        json: json!({
            "instances": instances_deleted,
            "executions": executions_deleted,
            "events": events_deleted,
            "queued": queue_messages_deleted,
        }),
    }
}
