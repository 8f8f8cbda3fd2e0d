//! The trait that the fetches of both queues share, so that waiting and serving are written once.

use std::{fmt::Debug, sync::Arc, time::Duration};

use duroxide_provider::{
    Demand, OrchestrationClaim, SessionFetchConfig, StrandedWork, Wanted, WorkClaim,
    store::{ActivityFetch, FetchRequest, InstanceFetch, Op, StoreFailure},
};
use tokio::sync::oneshot;

use crate::submit::Delivery;

/// Where the answer to a fetch goes.
pub(crate) type FetchReply<F> = oneshot::Sender<Result<Delivery<F>, StoreFailure>>;

/// A fetch from one of the two queues.
pub(crate) trait QueueFetch: FetchRequest + Debug + Send + 'static {
    /// A claimed item.
    type Claim: Debug + Send + 'static;

    /// The operation that releases a claim as if it had never been made.
    fn release(claim: &Self::Claim) -> Op;

    /// For how long each item is locked.
    fn lock_timeout(&self) -> Duration;

    /// The caller's demand: the number of items that the fetch asks for when it is served.
    fn demand(&self) -> Option<&Arc<dyn Demand>>;

    /// Asks for this many items instead.
    fn set_wanted(&mut self, wanted: Wanted);

    /// The fetch with longer leases.
    fn with_longer_leases(&self, by: Duration) -> Self;

    /// The operation that renews the lease of a claim.
    fn renewal(claim: &Self::Claim, extend_for: Duration) -> Op;

    /// Whether the fetch asks for one item by name, to end it because no node can run it.
    fn is_to_end(&self) -> bool;

    /// Whether the fetch asks for this item by name.
    fn names(&self, work: &StrandedWork) -> bool;
}

/// The methods that read fields which both fetches have.
macro_rules! terms_of_fetch {
    () => {
        fn lock_timeout(&self) -> Duration {
            self.lock_timeout
        }

        fn demand(&self) -> Option<&Arc<dyn Demand>> {
            self.demand.as_ref()
        }

        fn set_wanted(&mut self, wanted: Wanted) {
            Wanted { max: self.max, free_slots: self.free_slots } = wanted;
        }

        fn is_to_end(&self) -> bool {
            self.only.is_some()
        }
    };
}

impl QueueFetch for InstanceFetch {
    type Claim = OrchestrationClaim;

    terms_of_fetch!();

    fn release(claim: &OrchestrationClaim) -> Op {
        Op::AbandonInstance { token: claim.lock_token.clone(), delay: None, ignore_attempt: true }
    }

    fn with_longer_leases(&self, by: Duration) -> Self {
        Self { lock_timeout: self.lock_timeout.saturating_add(by), ..self.clone() }
    }

    fn renewal(claim: &OrchestrationClaim, extend_for: Duration) -> Op {
        Op::RenewInstance { token: claim.lock_token.clone(), extend_for }
    }

    fn names(&self, work: &StrandedWork) -> bool {
        work.activity.is_none() && self.only.as_ref() == Some(&work.instance)
    }
}

impl QueueFetch for ActivityFetch {
    type Claim = WorkClaim;

    terms_of_fetch!();

    fn release(claim: &WorkClaim) -> Op {
        Op::AbandonActivity { token: claim.lock_token.clone(), delay: None, ignore_attempt: true }
    }

    fn with_longer_leases(&self, by: Duration) -> Self {
        let longer = |time: Duration| time.saturating_add(by);
        let session = self
            .session
            .clone()
            .map(|session| SessionFetchConfig { lock_timeout: longer(session.lock_timeout), ..session });
        Self { lock_timeout: longer(self.lock_timeout), session, ..self.clone() }
    }

    fn renewal(claim: &WorkClaim, extend_for: Duration) -> Op {
        Op::RenewActivity { token: claim.lock_token.clone(), extend_for }
    }

    fn names(&self, work: &StrandedWork) -> bool {
        work.activity.is_some() && self.only == work.activity
    }
}
