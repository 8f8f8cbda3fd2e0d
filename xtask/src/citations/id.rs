//! The forms of ids, and finding them in a text.
//!
//! | Form | What |
//! |---|---|
//! | `16.11`, `20.2a`, `2.4.1` | rules |
//! | `S3.14`, `S3.T14`, `S0.A1` | requirements |
//! | `A11`, `A17.3` | areas of the public API |
//! | `B7`, `C4`, `D8`, `I05`, `L1`, `Q1` | pitfalls, readings, mechanisms, guarantees |
//!
//! Numbers that are no ids: `0.9` (there is no section 0), `1.5 s` and other measures, and text in backticks. A number
//! of three parts is a version unless the documents say otherwise.

/// Letters of the ids that consist of a letter and one number.
const LETTERS: [char; 6] = ['B', 'C', 'D', 'I', 'L', 'Q'];

/// Words after a number that make it a measure.
const UNITS: [&str; 16] = [
    "s", "ms", "µs", "us", "ns", "min", "h", "%", "×", "x", "times", "seconds", "minutes", "KiB", "MiB",
    "GiB",
];

/// The ids in a line of prose.
pub(super) fn ids(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for prose in outside_backticks(text) {
        let mut rest = prose;
        while let Some(start) = rest.find(is_word) {
            let from_start = &rest[start..];
            let end = from_start.find(|c| !is_word(c)).unwrap_or(from_start.len());
            let (word, after) = from_start.split_at(end);
            let word = word.trim_end_matches(['.', '-']);
            if is_id(word) && !(is_rule(word) && is_unit(after)) {
                found.push(word);
            }
            rest = after;
        }
    }
    found
}

/// Whether the whole word has the form of an id.
pub(super) fn is_id(word: &str) -> bool {
    let mut chars = word.chars();
    let letter = chars.next();
    let rest = chars.as_str();
    match letter {
        Some('S') => is_requirement(rest),
        Some('A') => {
            is_number(rest) || rest.split_once('.').is_some_and(|(a, b)| is_number(a) && is_number(b))
        }
        Some(letter) if LETTERS.contains(&letter) => rest.len() <= 2 && is_digits(rest),
        _ => is_rule(word),
    }
}

/// Whether the id is that of a rule: a number that may also be a measure or a version.
pub(super) fn is_rule(word: &str) -> bool {
    let numbers = word.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(word);
    let parts: Vec<&str> = numbers.split('.').collect();
    matches!(parts.len(), 2 | 3) && parts.into_iter().all(is_number)
}

/// The rule that an item such as `2.4.1` belongs to.
pub(super) fn parent(id: &str) -> Option<&str> {
    let (rule, _) = id.rsplit_once('.')?;
    (is_rule(id) && rule.contains('.')).then_some(rule)
}

/// The text after the `S`.
fn is_requirement(rest: &str) -> bool {
    let Some((document, number)) = rest.split_once('.') else { return false };
    is_digits(document) && is_number(number.strip_prefix(['A', 'T']).unwrap_or(number))
}

/// At most two digits, counted from 1.
fn is_number(text: &str) -> bool {
    is_digits(text) && text.len() <= 2 && !text.starts_with('0')
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Characters that hold a word together, so that `v1.2`, `2.5-rc`, `x_1.5` and paths are no ids.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '=' | '\'' | '"')
}

fn is_unit(after: &str) -> bool {
    let word = after.trim_start().split(|c: char| c.is_whitespace() || ",.;:)".contains(c)).next();
    word.is_some_and(|word| UNITS.contains(&word))
}

/// The parts of a line that are not code.
fn outside_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_all_forms_are_found() {
        for (text, expected) in [
            ("16.11, B1", vec!["16.11", "B1"]),
            ("S3.T14, S0.A1 and S4.7: why", vec!["S3.T14", "S0.A1", "S4.7"]),
            ("As the rule says (16.3 and 16.4).", vec!["16.3", "16.4"]),
            ("2.2 (a) and (d), 20.2a, 2.4.1.", vec!["2.2", "20.2a", "2.4.1"]),
            ("I01 to I05, A11, A17.3, Q1", vec!["I01", "I05", "A11", "A17.3", "Q1"]),
        ] {
            assert_eq!(ids(text), expected, "{text}");
        }
    }

    #[test]
    fn other_numbers_are_no_ids() {
        for text in [
            "sqlx 0.9, v1.2, 2.5-rc, x_1.5, \"1.2\", crates/1.2",
            "after 1.5 s, 2.25 times, 1.5 %, 12.5 MiB.",
            "`16.11` and `B1` in code",
            "S3, B, I5A, S3.T, 100.1, 1.100, 1., 1.2.3.4",
        ] {
            assert_eq!(ids(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn only_items_have_a_parent() {
        assert_eq!(parent("2.4.1"), Some("2.4"));
        assert_eq!([parent("2.4"), parent("A17.3"), parent("S0.1")], [None, None, None]);
    }
}
