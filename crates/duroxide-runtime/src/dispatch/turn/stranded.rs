//! Ends instances that no node can run.

use super::InstanceWork;
use crate::{
    cache::Lookup,
    dispatch::decide::{Decision, StrandedEnd, decide_stranded, recorded_parent},
};

impl InstanceWork {
    /// Ends an instance that no node can run, without running its code.
    pub(crate) async fn end_stranded(mut self, stranded_end: &StrandedEnd) {
        if let Lookup::Live(unused) | Lookup::Stale(unused) = self.node.cache.take(&self.claim) {
            self.node.drop_on_turn_thread([*unused]);
        }
        let Some(loaded) = self.load().await else { return };
        let ended = match &loaded.history_error {
            None => false,
            Some(_) => {
                let Some(ended) = self.has_ended().await else { return };
                ended
            }
        };
        let decision = decide_stranded(self.claimed(&loaded, ended), &self.policy(&[]), stranded_end);
        match decision {
            Some(Decision::End(termination)) => self.terminate(termination, loaded).await,
            Some(Decision::DropEnded) => self.drop_for_ended(recorded_parent(&loaded.history).as_ref()).await,
            Some(Decision::DropUnknown) => self.drop_for_unknown().await,
            Some(Decision::Run(_) | Decision::Abandon(_)) | None => self.abandon(None, true).await,
        }
    }
}
