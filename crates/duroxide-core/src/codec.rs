//! The codec of every `_typed` method.
//!
//! JSON, except that a value whose JSON form is a string is written as the bare string, so that typed and plain
//! calls can talk to each other.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The text of a value.
///
/// # Errors
/// The `serde_json` text if the value has no JSON form.
pub fn encode<T: Serialize>(value: &T) -> Result<String, String> {
    match serde_json::to_value(value).map_err(|error| error.to_string())? {
        Value::String(text) => Ok(text),
        other => Ok(other.to_string()),
    }
}

/// The value of a text.
///
/// # Errors
/// The `serde_json` text if it is neither the JSON of a `T` nor, taken as a JSON string, a `T`.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text)
        .or_else(|error| serde_json::from_value(Value::String(text.to_owned())).map_err(|_| error))
        .map_err(|error| error.to_string())
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
    fn what_does_not_decode_says_so() {
        assert!(decode::<u32>("abc").unwrap_err().contains("expected"));
    }
}
