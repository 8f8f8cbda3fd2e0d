//! What is refused at the door, before anything is stored.

use duroxide_core::{codec, is_reserved_root_id, reserved_root_id_message};
use semver::Version;
use serde::Serialize;

use super::{Client, ClientError};

impl Client {
    /// Refuses a text over the payload limit.
    pub(super) fn check_size(&self, what: &str, text: &str) -> Result<(), ClientError> {
        self.check_bytes(what, text.len())
    }

    fn check_bytes(&self, what: &str, size: usize) -> Result<(), ClientError> {
        match self.limits.max_payload_bytes {
            Some(limit) if size > limit => Err(ClientError::invalid_input(format!(
                "{what} size ({size} bytes) exceeds limit ({limit} bytes)"
            ))),
            _ => Ok(()),
        }
    }

    /// The text of a value, by the codec of every `_typed` method. It is measured first, so that a value over the limit is
    /// refused without the memory that its text would need.
    pub(super) fn encode<T: Serialize + ?Sized>(&self, what: &str, value: &T) -> Result<String, ClientError> {
        let failed = |error| ClientError::invalid_input(format!("encode: {error}"));
        if self.limits.max_payload_bytes.is_some() {
            self.check_bytes(what, codec::encoded_len(&value).map_err(failed)?)?;
        }
        codec::encode(&value).map_err(failed)
    }

    /// Refuses a message to an instance that has too many already. Clients that send at the same moment can each find
    /// the last place free, so the limit may be passed by as many messages as are sent at once.
    pub(super) async fn check_mailbox(&self, instance: &str) -> Result<(), ClientError> {
        let Some(limit) = self.limits.max_mailbox_messages else { return Ok(()) };
        if self.store.mailbox_holds(instance, limit).await? == Some(true) {
            return Err(ClientError::invalid_input(format!(
                "instance '{instance}' has reached the limit of waiting messages ({limit} messages)"
            )));
        }
        Ok(())
    }

    /// Refuses ids and names that nobody could have meant.
    pub(super) fn check_name(&self, what: &str, name: &str) -> Result<(), ClientError> {
        if name.is_empty() {
            return Err(ClientError::invalid_input(format!("{what} is empty")));
        }
        self.check_size(what, name)
    }
}

/// Refuses ids that could be taken for automatic child ids.
pub(super) fn check_not_reserved(instance: &str) -> Result<(), ClientError> {
    if is_reserved_root_id(instance) {
        return Err(ClientError::invalid_input(reserved_root_id_message(instance)));
    }
    Ok(())
}

/// Refuses a version that no handler can have, so that it does not bounce until it is poison.
pub(super) fn check_version(version: &str) -> Result<(), ClientError> {
    Version::parse(version).map(drop).map_err(|error| {
        ClientError::invalid_input(format!("'{version}' is not a semantic version: {error}"))
    })
}
