//! Operations on the waiting fetches of both queues.

use duroxide_core::Timestamp;
use duroxide_provider::store::{Readies, StoreFailure};

use super::Machine;

impl Machine {
    /// Asks the callers of waiting fetches how many items they want now.
    pub(crate) fn ask_demands(&mut self) {
        self.instances.ask_demands();
        self.activities.ask_demands();
    }

    /// Answers the fetches whose deadline has passed.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        self.instances.expire(now);
        self.activities.expire(now);
    }

    /// Items may have become ready outside of a transaction that serves fetches.
    pub(crate) fn made_ready(&mut self, readies: Readies) {
        if readies.instances {
            self.instances.refresh();
        }
        if readies.activities {
            self.activities.refresh();
        }
    }

    /// A transaction had no effect: fails the fetches that it would have served.
    pub(crate) fn fail_fetches(&mut self, failure: &StoreFailure) {
        self.instances.fail_wanting(failure);
        self.activities.fail_wanting(failure);
    }
}
