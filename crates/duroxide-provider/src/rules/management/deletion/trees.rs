//! Instances with all their descendants.

use std::collections::BTreeMap;

use crate::rules::{InstanceRow, Rows, Rules, Tables};

impl<T: Tables> Rules<T> {
    /// The trees of the first of these roots, each instance before its children. Reads level by level of all trees, and leaves out
    /// the trees behind those that hold `at_most` instances.
    pub(super) fn trees(&mut self, roots: &[u64], at_most: usize) -> Rows<Vec<Vec<InstanceRow>>> {
        let mut trees: Vec<Vec<InstanceRow>> = vec![Vec::new(); roots.len()];
        // The position of the tree of each instance.
        let mut tree_of: BTreeMap<u64, usize> = roots.iter().copied().zip(0..).collect();
        let mut level = roots.to_vec();
        while !level.is_empty() {
            let mut next = Vec::new();
            for family in self.tables.families(&level)? {
                let Some(position) = tree_of.get(&family.row.number).copied() else { continue };
                for child in family.children.into_iter().filter(|child| !tree_of.contains_key(child)) {
                    next.push((child, position));
                }
                trees.get_mut(position).into_iter().for_each(|tree| tree.push(family.row.clone()));
            }
            tree_of.extend(next.iter().copied());
            trees.truncate(trees_within(&trees, &next, at_most));
            level =
                next.into_iter().filter(|(_, tree)| *tree < trees.len()).map(|(child, _)| child).collect();
        }
        Ok(trees)
    }
}

/// How many trees it takes to hold `at_most` instances, with those that were found last and not read yet.
fn trees_within(trees: &[Vec<InstanceRow>], found: &[(u64, usize)], at_most: usize) -> usize {
    let mut sizes: Vec<usize> = trees.iter().map(Vec::len).collect();
    for (_, position) in found {
        sizes.get_mut(*position).into_iter().for_each(|size| *size += 1);
    }
    let before = |sum: &mut usize, size: usize| {
        let before = *sum;
        *sum += size;
        Some(before)
    };
    sizes.into_iter().scan(0, before).take_while(|before| *before < at_most).count()
}
