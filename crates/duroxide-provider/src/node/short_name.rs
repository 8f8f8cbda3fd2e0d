//! Node names as they are shown to people.

use super::JoinedNode;

/// How many hexadecimal digits make a node name unique.
const RANDOM_DIGITS: usize = 32;
/// How many of them are shown.
const SHOWN_DIGITS: usize = 6;

/// The part of a node name that is shown to people: `web-1-4711-3fa2c9` of `web-1-4711-3fa2c9…`, whose last 32 characters are
/// random digits. The names of session owners end like this too. A name that ends otherwise is shown whole.
///
/// The short name begins the whole one, so logs and listings can be searched for it.
///
/// ```
/// use duroxide_provider::short_node_name;
///
/// assert_eq!(short_node_name("web-1-4711-3fa2c9d80b6e4d1f9a7c5e2b1d0f8a63"), "web-1-4711-3fa2c9");
/// assert_eq!(short_node_name("worker-a"), "worker-a");
/// ```
pub fn short_node_name(name: &str) -> &str {
    let Some(before) = name.len().checked_sub(RANDOM_DIGITS) else { return name };
    let (head, digits) = name.as_bytes().split_at(before);
    let is_random = digits.iter().all(u8::is_ascii_hexdigit) && head.last().is_none_or(|byte| *byte == b'-');
    if !is_random {
        return name;
    }
    name.get(..before + SHOWN_DIGITS).unwrap_or(name)
}

impl JoinedNode {
    /// Its short name for display, see [`short_node_name`].
    pub fn short_name(&self) -> &str {
        short_node_name(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_random_end_is_cut() {
        let digits = "0123456789abcdef0123456789abcdef";
        assert_eq!(short_node_name(digits), "012345", "the name of a node of an earlier release");
        assert_eq!(short_node_name(&format!("work-0-web-7-{digits}")), "work-0-web-7-012345");
        for whole in ["", "web", "web-1-3fa2c9", &format!("x{digits}"), &format!("web-{}", &digits[1..])] {
            assert_eq!(short_node_name(whole), whole);
        }
        let not_ascii = format!("é{}", &digits[1..]);
        assert_eq!(short_node_name(&not_ascii), not_ascii);
    }
}
