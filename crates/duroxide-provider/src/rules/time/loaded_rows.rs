//! Rows that were stored elsewhere and put into the tables again. A crash or a person may have changed some of them since
//! a rule last saw them.

use crate::rules::{Readiness, Rows, Rules, Tables};

impl<T: Tables> Rules<T> {
    /// Decides which of these instances and activities can be claimed.
    ///
    /// An instance that is ready keeps its place as long as it has messages: the claim that takes it finds out whether
    /// one is visible.
    pub fn settle_loaded(&mut self, instances: &[u64], activities: &[u64]) -> Rows<()> {
        for number in activities {
            if let Some(activity) = self.tables.activity(*number)? {
                self.settle_activity(activity)?;
            }
        }
        for number in instances {
            let Some(row) = self.tables.instance(*number)? else { continue };
            let is_ready = matches!(row.readiness, Readiness::Ready { .. }) && row.route.is_some();
            if !is_ready || !self.tables.has_messages(*number)? {
                self.settle(row)?;
            }
        }
        Ok(())
    }
}
