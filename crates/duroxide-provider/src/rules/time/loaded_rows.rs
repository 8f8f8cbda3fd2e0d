//! Rows that were stored elsewhere and put into the tables again. A crash or a person may have changed some of them since
//! a rule last saw them.

use crate::rules::{Rows, Rules, Tables};

impl<T: Tables> Rules<T> {
    /// Decides which of these instances and activities can be claimed.
    pub fn settle_loaded(&mut self, instances: &[u64], activities: &[u64]) -> Rows<()> {
        for number in activities {
            if let Some(activity) = self.tables.activity(*number)? {
                self.settle_activity(activity)?;
            }
        }
        for number in instances {
            if let Some(row) = self.tables.instance(*number)? {
                self.settle_stored(row)?;
            }
        }
        Ok(())
    }
}
