//! Error texts as log lines show them.

/// Bytes of an error text that a log line shows: the text comes from user code and may be large.
const REASON_BYTES_MAX: usize = 1 << 10;

/// The beginning of an error text, as log lines show it: at most 1 KiB, cut off between two characters.
pub fn shortened_reason(text: &str) -> &str {
    if text.len() <= REASON_BYTES_MAX {
        return text;
    }
    let end = (0..=REASON_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_off_between_two_characters() {
        let long = "ä".repeat(REASON_BYTES_MAX);
        assert_eq!(shortened_reason(&long).len(), REASON_BYTES_MAX);
        let odd = format!("x{long}");
        assert_eq!(shortened_reason(&odd).len(), REASON_BYTES_MAX - 1);
        assert_eq!(shortened_reason("short"), "short");
    }
}
