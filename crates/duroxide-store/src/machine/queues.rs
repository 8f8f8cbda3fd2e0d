//! What concerns the waiting fetches of both queues.

use duroxide_core::Timestamp;
use duroxide_provider::store::{Readies, StoreFailure};

use super::Machine;

impl Machine {
    /// Asks the callers of waiting fetches how many items they want now.
    pub(crate) fn ask_demands(&mut self) {
        self.instances.ask_demands();
        self.activities.ask_demands();
    }

    /// Answers the fetches whose time is up.
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

    /// Whether the last transaction answered the only fetch of a queue, whose caller is about to make the next one.
    pub(super) fn lacks_fetch(&self) -> bool {
        self.instances.awaits_next_fetch() || self.activities.awaits_next_fetch()
    }

    /// A transaction begins: no fetch is awaited for it any more.
    pub(super) fn end_awaits(&mut self) {
        self.instances.end_await();
        self.activities.end_await();
    }
}
