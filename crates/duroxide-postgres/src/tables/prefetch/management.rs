//! What operations of operators need besides the rows that they name: more round trips, but no more of them for more operations.

use std::collections::BTreeSet;

use crate::{database_error::DatabaseError, needs::Needs, tables::PostgresTables};

impl PostgresTables {
    pub(super) fn load_for_management(&mut self, needs: &Needs<'_>) -> Result<(), DatabaseError> {
        if !needs.deleted.is_empty() {
            let deleted = self.numbers_of(needs.deleted.iter());
            self.load_families(&deleted)?;
            let roots = self.numbers_of(needs.deleted_trees.iter());
            self.load_trees(roots)?;
        }
        let number = |(id, keep): &(String, u32)| Some((self.set.ids.get(id).copied().flatten()?, *keep));
        let pruned: BTreeSet<(u64, u32)> = needs.pruned.iter().filter_map(number).collect();
        if !pruned.is_empty() {
            self.load_old_executions(&pruned)?;
        }
        if !needs.retried_letters.is_empty() {
            self.load_origins(&needs.retried_letters)?;
        }
        Ok(())
    }

    /// Loads all descendants, level by level of all trees.
    fn load_trees(&mut self, roots: Vec<u64>) -> Result<(), DatabaseError> {
        let mut seen: BTreeSet<u64> = roots.iter().copied().collect();
        let mut level = roots;
        while !level.is_empty() {
            let families = self.families(&level)?;
            let children = families.into_iter().flat_map(|family| family.children);
            level = children.filter(|child| seen.insert(*child)).collect();
        }
        Ok(())
    }

    fn numbers_of<'a>(&self, ids: impl Iterator<Item = &'a String>) -> Vec<u64> {
        ids.filter_map(|id| self.set.ids.get(id).copied().flatten()).collect()
    }
}
