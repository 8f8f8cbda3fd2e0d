//! Nodes: which claims they hold, and how these are released when a node ends.

use super::{InstanceChange, Rows, Rules, Tables};
use crate::{
    ClaimToken, Losses, NodeId,
    store::{Answer, ApplyError, NodeRow, bounds::NODE_FORGOTTEN_AFTER},
};

impl<T: Tables> Rules<T> {
    /// Renews nodes, and deletes rows that were not renewed for a day. A node that was ended by mistake goes on claiming
    /// under its number, so it gets its row again: when it dies, its claims must be found.
    pub(super) fn renew_nodes(&mut self, nodes: &[(NodeId, NodeRow)]) -> Rows<()> {
        for (node, row) in nodes {
            if !self.tables.touch_node(&row.name, self.now)? {
                self.tables.restore_node(*node, row, self.now)?;
            }
        }
        for node in self.tables.nodes()? {
            if self.now.saturating_since(node.seen_at) >= NODE_FORGOTTEN_AFTER {
                self.tables.delete_node(node.id)?;
            }
        }
        Ok(())
    }

    /// Ends the leases of a node. Their attempts stay counted, because any of them may have ended the node. If one is
    /// known to have ended it, that one keeps its lease, so that the other claims go first, with their attempt taken
    /// back.
    pub(super) fn end_node(&mut self, name: &str, blamed: Option<&ClaimToken>) -> Result<Answer, ApplyError> {
        let Some((node, session_owners)) = self.tables.node(name)? else { return Ok(Answer::Done) };
        let held = self.tables.claims_of(node, self.now)?;
        match blamed.filter(|blamed| held.contains(blamed)) {
            None => {
                for claim in &held {
                    self.end_claim(claim)?;
                }
            }
            Some(blamed) => {
                let blamed_losses = self.change_losses(blamed, Losses::blamed_again)?;
                for claim in held.iter().filter(|claim| *claim != blamed) {
                    self.give_back_unblamed(claim, blamed_losses)?;
                }
            }
        }
        for owner in session_owners {
            self.end_sessions(&owner)?;
        }
        self.tables.delete_node(node)?;
        Ok(Answer::Done)
    }

    fn end_claim(&mut self, claim: &ClaimToken) -> Result<(), ApplyError> {
        match claim {
            ClaimToken::Instance(token) => {
                let Some(mut row) = self.instance_locked_by(token)? else { return Ok(()) };
                row.lock.iter_mut().for_each(|lock| lock.lease.until = lock.lease.until.min(self.now));
                self.settle_with(row, InstanceChange::Lock)?;
            }
            ClaimToken::Activity(token) => {
                let mut activity = self.activity_locked_by(token)?;
                activity.lock.iter_mut().for_each(|lease| lease.until = lease.until.min(self.now));
                self.settle_activity(activity)?;
            }
        }
        Ok(())
    }

    /// Gives back a claim that did not end its node.
    fn give_back_unblamed(&mut self, claim: &ClaimToken, blamed_losses: Losses) -> Result<(), ApplyError> {
        self.change_losses(claim, |losses| losses.beside(blamed_losses))?;
        match claim {
            ClaimToken::Instance(token) => self.abandon_instance(token, None, true)?,
            ClaimToken::Activity(token) => self.abandon_activity(token, None, true)?,
        };
        Ok(())
    }

    /// Changes the losses of a claim, and returns them.
    fn change_losses(
        &mut self,
        claim: &ClaimToken,
        change: impl FnOnce(Losses) -> Losses,
    ) -> Result<Losses, ApplyError> {
        match claim {
            ClaimToken::Instance(token) => {
                let Some(mut row) = self.instance_locked_by(token)? else { return Ok(Losses::default()) };
                row.losses = change(row.losses);
                row.may_be_poison |= row.losses.lost > 0;
                self.tables.update_instance(&row, InstanceChange::Lock)?;
                Ok(row.losses)
            }
            ClaimToken::Activity(token) => {
                let mut activity = self.activity_locked_by(token)?;
                activity.losses = change(activity.losses);
                self.tables.update_activity(&activity)?;
                Ok(activity.losses)
            }
        }
    }
}
