//! Finds the name that was probably meant.

/// Of names in the order of their use, the last one that is similar to `wanted`, else the last one.
pub(super) fn closest<'a>(wanted: &str, used: &[&'a str]) -> Option<&'a str> {
    let alike = used.iter().rev().find(|name| is_alike(wanted, name));
    alike.or(used.last()).copied()
}

/// Whether two names differ in case, in separators, or in few letters.
fn is_alike(one: &str, other: &str) -> bool {
    let (one, other) = (letters(one), letters(other));
    let typos = one.len().max(other.len()) / 4;
    // A long name is compared only if it is about as long: the cost is the product of the lengths.
    one.len().abs_diff(other.len()) <= typos && distance(&one, &other) <= typos
}

/// Names are compared by this many letters.
const LETTERS_MAX: usize = 100;

fn letters(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(LETTERS_MAX).collect()
}

/// How many letters must be added, removed or replaced to make one name of the other.
fn distance(one: &[char], other: &[char]) -> usize {
    // `costs[i]` is the distance between the letters of `one` so far and the first i letters of `other`.
    let mut costs: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut diagonal = row;
        let mut left = row + 1;
        let mut next = vec![left];
        for (above, letter_there) in costs.iter().skip(1).zip(other) {
            let replaced = diagonal + usize::from(letter != letter_there);
            left = replaced.min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        costs = next;
    }
    costs.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_separators_or_a_letter_are_alike() {
        for (one, other) in
            [("Approval", "approval"), ("order_paid", "OrderPaid"), ("Approval", "Aproval"), ("abcd", "abxd")]
        {
            assert!(is_alike(one, other), "{one} {other}");
            assert!(is_alike(other, one), "{other} {one}");
        }
        for (one, other) in [("Approval", "Rejection"), ("a", "b"), ("paid", "pain in"), ("abcd", "axyd")] {
            assert!(!is_alike(one, other), "{one} {other}");
        }
    }

    #[test]
    fn the_distance_counts_changed_letters() {
        let of = |one: &str, other: &str| distance(&letters(one), &letters(other));
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!((of("", "abc"), of("abc", ""), of("abc", "abc")), (3, 3, 0));
    }

    #[test]
    fn a_name_that_is_spelt_alike_comes_before_a_later_one() {
        assert_eq!(closest("Approval", &["approval", "APPROVAL", "Cancelled"]), Some("APPROVAL"));
        assert_eq!(closest("Approval", &["Other", "Cancelled"]), Some("Cancelled"));
        assert_eq!(closest("Approval", &[]), None);
    }
}
