//! The codec of typed authoring: always JSON, so that every value survives a round trip.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{codec, not_retryable};

/// A text that is not the JSON of the wanted type. Says where the text came from, and its size instead of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodeError(String);

impl DecodeError {
    pub(super) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

impl From<DecodeError> for String {
    fn from(error: DecodeError) -> Self {
        error.0
    }
}

/// The JSON of a value.
///
/// # Errors
/// The `serde_json` text if the value has no JSON form.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// The length in bytes of the text that [`encode`] returns for a value, without allocating it.
///
/// # Errors
/// The `serde_json` text if the value has no JSON form.
pub fn encoded_len<T: Serialize + ?Sized>(value: &T) -> Result<usize, String> {
    let mut meter = Meter(0);
    serde_json::to_writer(&mut meter, value).map_err(|error| error.to_string())?;
    Ok(meter.0)
}

/// Counts JSON instead of keeping it.
struct Meter(usize);

impl std::io::Write for Meter {
    fn write(&mut self, json: &[u8]) -> std::io::Result<usize> {
        self.0 += json.len();
        Ok(json.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The value of a JSON text that comes from `origin`, such as `input of activity 'charge'`.
///
/// # Errors
/// If the text is not the JSON of a `T`.
pub fn decode<T: DeserializeOwned>(text: &str, origin: impl FnOnce() -> String) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|error| {
        let (origin, wanted, bytes) = (origin(), std::any::type_name::<T>(), text.len());
        let error = codec::without_content(error.to_string());
        DecodeError(format!("{origin} is not the JSON of {wanted}: {error} ({bytes} bytes)"))
    })
}

/// The recorded text of a typed error: its JSON, or its `Display` text if it has no JSON form.
pub fn encode_error<E: Serialize + Display>(error: &E) -> String {
    encode(error).unwrap_or_else(|_| error.to_string())
}

/// The prefix of the error text of a handler that could not read its input. No JSON begins with it.
const UNDECODABLE_INPUT: &str = "undecodable input: ";

/// The text that a typed handler fails with if it cannot read its input. Another attempt would get the same input.
pub fn undecodable_input(error: &DecodeError) -> String {
    not_retryable(format!("{UNDECODABLE_INPUT}{error}"))
}

/// The decode error in the text of a handler that could not read its input.
pub(super) fn as_undecodable_input(text: &str) -> Option<DecodeError> {
    text.strip_prefix(UNDECODABLE_INPUT).map(DecodeError::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn comes_back<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(value: T) {
        let text = encode(&value).unwrap();
        assert_eq!(encoded_len(&value), Ok(text.len()));
        assert_eq!(decode::<T>(&text, || "test".to_owned()).unwrap(), value);
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Number(u8),
        Text(String),
    }

    #[test]
    fn every_value_comes_back_as_it_went() {
        comes_back("\"quoted\"".to_owned());
        comes_back(Some("null".to_owned()));
        comes_back(None::<String>);
        comes_back(Untagged::Text("7".to_owned()));
        comes_back(Untagged::Number(7));
        comes_back("7".to_owned());
        comes_back(());
        comes_back((String::new(), vec![1_u8]));
    }

    #[test]
    fn a_bare_text_is_not_the_json_of_a_string() {
        let error = decode::<String>("teapot", || "input of activity 'brew'".to_owned()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "input of activity 'brew' is not the JSON of alloc::string::String: expected ident at line 1 column 2 \
             (6 bytes)"
        );
    }

    #[test]
    fn an_error_gives_a_string_by_its_size() {
        let error = decode::<u32>("\"my secret\"", || "x".to_owned()).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
