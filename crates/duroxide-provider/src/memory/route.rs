use crate::{
    VersionTriple,
    store::{HeldBackBy, InstanceNeeds, InstanceOrder},
};

/// What filters look at. Ready instances are kept by route, so that one a node cannot take costs it nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Route {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) pinned: Option<VersionTriple>,
}

impl Route {
    pub(super) fn held_back_by(&self, order: &InstanceOrder) -> Option<HeldBackBy> {
        order.holds_back(self.name.as_deref(), self.version.as_deref(), self.pinned)
    }

    pub(super) fn needs(&self) -> InstanceNeeds {
        InstanceNeeds { name: self.name.clone(), version: self.version.clone(), pinned: self.pinned }
    }
}
