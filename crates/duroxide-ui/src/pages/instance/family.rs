//! [`Family`]: the parents and children of an instance.

use duroxide::{Client, InstanceInfo, InstanceQuery};

use crate::{failure::Failure, pages::instances::Row, redact::Redact};

/// Maximum number of ancestors followed.
const ANCESTORS_MAX: usize = 10;
/// Maximum depth of descendants.
const DEPTH_MAX: usize = 3;
/// Maximum number of descendants read.
const DESCENDANTS_MAX: usize = 100;

/// The parents and children of an instance, as they were read.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// The root first.
    ancestors: Vec<InstanceInfo>,
    /// Descendants with their depth below the instance. Children follow their parent.
    descendants: Vec<(usize, InstanceInfo)>,
    is_cut: bool,
}

impl Family {
    pub(super) async fn read(client: &Client, info: &InstanceInfo) -> Result<Self, Failure> {
        let mut family = Self { ancestors: ancestors(client, info).await?, ..Self::default() };
        let mut open = vec![(1, info.instance_id.clone())];
        while let Some((depth, parent)) = open.pop() {
            let room = DESCENDANTS_MAX.saturating_sub(family.descendants.len());
            if room == 0 {
                family.is_cut = true;
                break;
            }
            let query = InstanceQuery::default().parent(&parent).limit(u32::try_from(room).unwrap_or(1));
            let page = client.query_instances(&query).await?;
            family.is_cut |= page.next.is_some();
            family.insert_below(&parent, depth, page.instances, &mut open);
        }
        Ok(family)
    }

    fn insert_below(
        &mut self,
        parent: &str,
        depth: usize,
        children: Vec<InstanceInfo>,
        open: &mut Vec<(usize, String)>,
    ) {
        if depth < DEPTH_MAX {
            open.extend(children.iter().map(|child| (depth + 1, child.instance_id.clone())));
        }
        let parent_at = self.descendants.iter().position(|(_, info)| info.instance_id == parent);
        let at = parent_at.map_or(0, |at| at + 1);
        // The oldest first, as the code called them.
        let children = children.into_iter().rev().map(|child| (depth, child));
        self.descendants.splice(at..at, children);
    }
}

async fn ancestors(client: &Client, info: &InstanceInfo) -> Result<Vec<InstanceInfo>, Failure> {
    let mut ancestors = Vec::new();
    let mut next = info.parent_instance_id.clone();
    while let Some(id) = next.filter(|_| ancestors.len() < ANCESTORS_MAX) {
        // A deleted parent ends the chain.
        let Ok(parent) = client.get_instance_info(&id).await else { break };
        next = parent.parent_instance_id.clone();
        ancestors.insert(0, parent);
    }
    Ok(ancestors)
}

/// The tree as it is shown.
#[derive(Debug)]
pub(super) struct FamilyView {
    pub(super) members: Vec<Member>,
    pub(super) is_cut: bool,
}

/// An instance of the tree.
#[derive(Debug)]
pub(super) struct Member {
    /// The depth in the tree, which the template shows by a style class.
    pub(super) depth: usize,
    pub(super) row: Row,
    pub(super) is_self: bool,
}

impl FamilyView {
    pub(super) fn new(family: &Family, info: &InstanceInfo, redact: &Redact, now_ms: u64) -> Self {
        let own_depth = family.ancestors.len();
        let member = |depth, info: &InstanceInfo, is_self| Member {
            depth,
            row: Row::new(info, redact, now_ms),
            is_self,
        };
        let above = family.ancestors.iter().enumerate().map(|(depth, info)| member(depth, info, false));
        let below = family.descendants.iter().map(|(depth, info)| member(own_depth + depth, info, false));
        let members = above.chain([member(own_depth, info, true)]).chain(below).collect();
        Self { members, is_cut: family.is_cut }
    }

    /// Whether the instance has neither parent nor children.
    pub(super) fn is_alone(&self) -> bool {
        self.members.len() == 1
    }
}
