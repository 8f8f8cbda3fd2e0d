//! Lays a tree out as lines with branches.

use std::collections::{BTreeMap, BTreeSet};

/// The instances of a tree from top to bottom, each with the branch in front of it. `children` are pairs of parent and
/// child, in the order in which they are shown.
pub(super) fn lay_out<'a>(root: &'a str, children: &[(&'a str, &'a str)]) -> Vec<(String, &'a str)> {
    let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (parent, child) in children {
        of.entry(parent).or_default().push(child);
    }
    let mut lines = vec![(String::new(), root)];
    let mut seen = BTreeSet::from([root]);
    // A stack of the instances still to be shown, with the margin of their siblings.
    let mut open: Vec<(String, bool, &str)> = Vec::new();
    push_children(&mut open, &of, root, "");
    while let Some((margin, is_last, id)) = open.pop() {
        // A damaged store may contain a cycle.
        if !seen.insert(id) {
            continue;
        }
        lines.push((format!("{margin}{}", if is_last { "└─ " } else { "├─ " }), id));
        let below = format!("{margin}{}", if is_last { "   " } else { "│  " });
        push_children(&mut open, &of, id, &below);
    }
    lines
}

fn push_children<'a>(
    open: &mut Vec<(String, bool, &'a str)>,
    of: &BTreeMap<&str, Vec<&'a str>>,
    parent: &str,
    margin: &str,
) {
    let children = of.get(parent).into_iter().flatten().rev().enumerate();
    open.extend(children.map(|(from_last, child)| (margin.to_owned(), from_last == 0, *child)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(children: &[(&str, &str)]) -> String {
        let lines = lay_out("root", children);
        lines.iter().map(|(branch, id)| format!("{branch}{id}\n")).collect()
    }

    #[test]
    fn a_root_alone_is_one_line() {
        assert_eq!(drawn(&[]), "root\n");
    }

    #[test]
    fn children_hang_below_their_parents_in_order() {
        let expected = "\
root
├─ a
│  ├─ a1
│  │  └─ deep
│  └─ a2
└─ b
   └─ b1
";
        let children = [("root", "a"), ("root", "b"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("a1", "deep")];
        assert_eq!(drawn(&children), expected);
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(drawn(&[("root", "a"), ("a", "root"), ("a", "a")]), "root\n└─ a\n");
    }
}
