use crate::{VersionTriple, store::InstanceOrder};

/// What filters look at. Ready instances are kept by route, so that one a node cannot take costs it nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Route {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) pinned: Option<VersionTriple>,
}

impl Route {
    pub(super) fn is_accepted_by(&self, order: &InstanceOrder) -> bool {
        order.accepts(self.name.as_deref(), self.version.as_deref(), self.pinned)
    }
}
