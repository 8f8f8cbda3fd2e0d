//! The longest string value of a JSON text.

use std::ops::Range;

use memchr::{memchr, memchr2};

/// Where the longest string value of a JSON text is, without its quotes. The range is empty if there is none. Names of
/// fields do not count.
pub(super) fn longest_literal(json: &str) -> Range<usize> {
    let mut longest = 0..0;
    let mut rest = 0;
    while let Some(literal) = next_literal(json.as_bytes(), rest) {
        rest = literal.end + 1;
        let is_name = json.as_bytes().get(rest) == Some(&b':');
        if literal.len() > longest.len() && !is_name {
            longest = literal;
        }
    }
    longest
}

fn next_literal(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + memchr(b'"', bytes.get(from..)?)? + 1;
    let mut at = start;
    loop {
        let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(found) == Some(&b'"') {
            return Some(start..found);
        }
        // The byte after the backslash belongs to the escape.
        at = found + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(json: &str) -> &str {
        &json[longest_literal(json)]
    }

    #[test]
    fn the_longest_value_is_found_with_its_escapes() {
        assert_eq!(longest(r#"{"name":"bc","d":["efg",1]}"#), "efg");
        assert_eq!(longest(r#"{"a":"b\"c\\","d":null}"#), r#"b\"c\\"#);
        assert_eq!(longest(r#"{"a":"\\\"","d":"\u0001ß"}"#), r"\u0001ß");
    }

    /// Stored texts may be damaged.
    #[test]
    fn a_text_that_is_not_json_has_no_unfinished_literal() {
        for text in ["", "plain", "\"", "{\"a", "\"a\\", "\"a\\\""] {
            assert_eq!(longest(text), "", "{text}");
        }
        assert_eq!(longest("\"a\" \"bcd"), "a");
    }
}
