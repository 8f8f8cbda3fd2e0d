//! Ending what no node can run.

use super::InstanceWork;
use crate::{
    cache::Lookup,
    dispatch::decide::{Admission, Sentence, condemn, recorded_parent},
};

impl InstanceWork {
    /// Ends an instance that no node can run, without running its code.
    pub(crate) async fn end_stranded(mut self, sentence: &Sentence) {
        if let Lookup::Live(unused) | Lookup::Stale(unused) = self.node.cache.take(&self.claim) {
            self.node.retire([*unused]);
        }
        let Some(loaded) = self.load().await else { return };
        let ended = match &loaded.history_error {
            None => false,
            Some(_) => {
                let Some(ended) = self.has_ended().await else { return };
                ended
            }
        };
        let admission = condemn(self.claimed(&loaded, ended), &self.policy(&[]), sentence);
        match admission {
            Some(Admission::End(termination)) => self.terminate(termination, loaded).await,
            Some(Admission::Drain) => self.drain(recorded_parent(&loaded.history).as_ref()).await,
            Some(Admission::Stray) => self.drop_strays().await,
            Some(Admission::Run(_) | Admission::Bounce(_)) | None => self.give_back(None, true).await,
        }
    }
}
