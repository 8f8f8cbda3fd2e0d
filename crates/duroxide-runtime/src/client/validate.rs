//! Validates the arguments of client calls before anything is stored.

use duroxide_core::{
    codec, is_reserved_root_id,
    limits::{MAX_ADDRESSED_ID_BYTES, MAX_NAME_BYTES},
    reserved_root_id_message, typed,
};
use semver::Version;
use serde::Serialize;

use super::{Client, ClientError};

impl Client {
    /// Refuses a payload of `size` bytes if that is over the limit.
    pub(super) fn check_size(&self, what: &str, size: usize) -> Result<(), ClientError> {
        self.limits.max_payload_bytes.map_or(Ok(()), |limit| check_limit(what, size, limit))
    }

    /// Encodes a value with the codec of every `_typed` method. Measures it first, so that a value over the limit is
    /// refused without allocating its text.
    pub(super) fn encode<T: Serialize + ?Sized>(&self, what: &str, value: &T) -> Result<String, ClientError> {
        let failed = |error| ClientError::invalid_input(format!("encode: {error}"));
        if self.limits.max_payload_bytes.is_some() {
            self.check_size(what, codec::encoded_len(&value).map_err(failed)?)?;
        }
        codec::encode(&value).map_err(failed)
    }

    /// Encodes a value of typed authoring: always as JSON. Measures it first, as [`Self::encode`] does.
    pub(crate) fn encode_json<T: Serialize + ?Sized>(
        &self,
        what: &str,
        value: &T,
    ) -> Result<String, ClientError> {
        let failed = |error| ClientError::invalid_input(format!("encode: {error}"));
        if self.limits.max_payload_bytes.is_some() {
            self.check_size(what, typed::encoded_len(value).map_err(failed)?)?;
        }
        typed::encode(value).map_err(failed)
    }

    /// Refuses empty and overlong ids and names. They are keys of the store and fields of the log, so their length is
    /// limited independently of payloads.
    pub(super) fn check_name(&self, what: &str, name: &str) -> Result<(), ClientError> {
        check_not_empty(what, name)?;
        self.check_length(what, name, MAX_NAME_BYTES)
    }

    /// Checks the id of an instance that a message is for, which may be a child with an automatic id.
    pub(super) fn check_address(&self, instance: &str) -> Result<(), ClientError> {
        check_not_empty(INSTANCE_ID, instance)?;
        self.check_length(INSTANCE_ID, instance, MAX_ADDRESSED_ID_BYTES)
    }

    /// Refuses a name over its limit, or over the payload limit if that is lower.
    pub(super) fn check_length(&self, what: &str, name: &str, limit: usize) -> Result<(), ClientError> {
        self.check_size(what, name.len())?;
        check_limit(what, name.len(), limit)
    }
}

/// How errors name an instance id.
pub(super) const INSTANCE_ID: &str = "instance id";

fn check_limit(what: &str, size: usize, limit: usize) -> Result<(), ClientError> {
    if size <= limit {
        return Ok(());
    }
    let message = format!("{what} size ({size} bytes) exceeds limit ({limit} bytes)");
    Err(ClientError::invalid_input(message))
}

fn check_not_empty(what: &str, name: &str) -> Result<(), ClientError> {
    if name.is_empty() {
        return Err(ClientError::invalid_input(format!("{what} is empty")));
    }
    Ok(())
}

/// Refuses ids of the form of automatic child ids.
pub(super) fn check_not_reserved(instance: &str) -> Result<(), ClientError> {
    if is_reserved_root_id(instance) {
        return Err(ClientError::invalid_input(reserved_root_id_message(instance)));
    }
    Ok(())
}

/// Refuses a version that no handler can have, so that the start is not retried until it is poison.
pub(super) fn check_version(version: &str) -> Result<(), ClientError> {
    Version::parse(version).map(drop).map_err(|error| {
        ClientError::invalid_input(format!("'{version}' is not a semantic version: {error}"))
    })
}
