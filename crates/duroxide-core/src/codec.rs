//! The codec of every `_typed` method.
//!
//! JSON, except that a value whose JSON form is a string is written as the bare string, so that typed and plain
//! calls can be mixed. But a text that is JSON itself is read as that JSON first: the string
//! `7` and the number 7 are the same text, and so are the string `null` and `None`. An `Option<String>` or an untagged enum may
//! be read as another value. The calls of [`typed`](crate::typed) always write JSON.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The text of a value.
///
/// # Errors
/// The `serde_json` text if the value has no JSON form.
pub fn encode<T: Serialize>(value: &T) -> Result<String, String> {
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    if let Value::String(text) = value { Ok(text) } else { Ok(value.to_string()) }
}

/// The length in bytes of the text that [`encode`] returns for a value, without allocating it.
///
/// # Errors
/// The `serde_json` text if the value has no JSON form.
pub fn encoded_len<T: Serialize>(value: &T) -> Result<usize, String> {
    let mut meter = Meter::default();
    serde_json::to_writer(&mut meter, value).map_err(|error| error.to_string())?;
    Ok(meter.len())
}

/// A writer that counts the bytes of JSON and discards them.
#[derive(Default)]
struct Meter {
    json: usize,
    /// The length of the text that the JSON stands for, if it is a string.
    text: usize,
    is_string: bool,
    /// Characters of an escape sequence that are still to come.
    escape: Escape,
}

#[derive(Default, Clone, Copy)]
enum Escape {
    #[default]
    None,
    Begun,
    /// This many hexadecimal digits of the escape are missing.
    Digits(u8),
}

impl Meter {
    fn len(&self) -> usize {
        // Both quotes were counted as characters of the text.
        if self.is_string { self.text.saturating_sub(2) } else { self.json }
    }

    /// Serde's writer escapes only characters of one byte, each as one sequence.
    fn count(&mut self, byte: u8) {
        self.escape = match (self.escape, byte) {
            (Escape::None, b'\\') => Escape::Begun,
            (Escape::Begun, b'u') => Escape::Digits(4),
            (Escape::Digits(more), _) if more > 1 => Escape::Digits(more - 1),
            _ => {
                self.text += 1;
                Escape::None
            }
        };
    }
}

impl std::io::Write for Meter {
    fn write(&mut self, json: &[u8]) -> std::io::Result<usize> {
        if self.json == 0 {
            self.is_string = json.first() == Some(&b'"');
        }
        self.json += json.len();
        if self.is_string {
            json.iter().for_each(|byte| self.count(*byte));
        }
        Ok(json.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The value of a text.
///
/// # Errors
/// The `serde_json` text if it is neither the JSON of a `T` nor, taken as a JSON string, a `T`. A string that is quoted
/// there is replaced by its size, because the text may be secret.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text)
        .or_else(|error| serde_json::from_value(Value::String(text.to_owned())).map_err(|_| error))
        .map_err(|error| without_content(error.to_string()))
}

/// The value of a text, with the origin of the text for errors, such as `input of activity 'Charge'`.
///
/// # Errors
/// The error of [`decode`], with the origin, the type and the size of the text.
pub fn decode_at<T: DeserializeOwned>(text: &str, origin: impl FnOnce() -> String) -> Result<T, String> {
    decode(text).map_err(|error| {
        let (origin, wanted, bytes) = (origin(), std::any::type_name::<T>(), text.len());
        format!("{origin} does not decode as {wanted}: {error} ({bytes} bytes)")
    })
}

/// Replaces a quoted string of a decode error by its size.
pub(crate) fn without_content(error: String) -> String {
    const QUOTED: &str = "string \"";
    const AFTER: &str = "\", expected";
    let Some((before, rest)) = error.split_once(QUOTED) else { return error };
    match rest.rsplit_once(AFTER) {
        Some((content, after)) => format!("{before}string of {} bytes, expected{after}", content.len()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_bare_and_come_back() {
        assert_eq!(encode(&"plain text").unwrap(), "plain text");
        assert_eq!(decode::<String>("plain text").unwrap(), "plain text");
        assert_eq!(encode(&vec![1, 2]).unwrap(), "[1,2]");
        assert_eq!(decode::<Vec<u8>>("[1,2]").unwrap(), [1, 2]);
    }

    #[test]
    fn the_length_is_known_before_the_text_is_made() {
        let texts =
            ["", "plain", "\"quoted\" \\ \n \u{0}\u{1f}\u{7f}", "ключ 🫖", "\\u0041", "\u{8}\u{c}\r\t/"];
        for text in texts {
            assert_eq!(encoded_len(&text), Ok(text.len()), "{text:?}");
            let nested = vec![Some(text), None];
            assert_eq!(encoded_len(&nested), Ok(encode(&nested).unwrap().len()), "{text:?}");
        }
        let map = std::collections::BTreeMap::from([(1, 2.5), (3, f64::NAN)]);
        assert_eq!(encoded_len(&map), Ok(encode(&map).unwrap().len()));
        assert_eq!(encoded_len(&()), Ok("null".len()));
        assert_eq!(encoded_len(&'"'), Ok(1));
    }

    #[test]
    fn what_does_not_decode_says_so() {
        assert!(decode::<u32>("abc").unwrap_err().contains("expected"));
    }

    #[test]
    fn an_error_gives_a_string_by_its_size() {
        let error = decode::<u32>(r#"  "my secret, \"expected\"" "#).unwrap_err();
        assert_eq!(error, "invalid type: string of 23 bytes, expected u32 at line 1 column 27");
        assert_eq!(without_content("string \"half".to_owned()), "string \"half", "not a quotation");
    }

    #[test]
    fn an_error_names_its_place() {
        let origin = || "input of activity 'Charge'".to_owned();
        assert_eq!(decode_at::<u32>("7", origin), Ok(7));
        assert_eq!(
            decode_at::<u32>("seven", origin).unwrap_err(),
            "input of activity 'Charge' does not decode as u32: expected value at line 1 column 1 (5 bytes)"
        );
    }
}
