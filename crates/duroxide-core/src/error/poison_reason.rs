//! The reason why a message became poison, stored in the JSON of the message.
//!
//! The fields and the text of a poison error are fixed, and its `message` is the JSON of the poisoned messages. A reader of that
//! JSON ignores unknown fields, so the reason is one more field of the first message.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ErrorDetails;

#[derive(Deserialize)]
struct Reason {
    poison_reason: Option<String>,
}

/// Adds the reason to the JSON of a work item, or of a list of work items. Returns any other text unchanged.
pub fn with_poison_reason(json: String, reason: &str) -> String {
    // `{"Kind":{` or `[{"Kind":{`: the first field of a message comes after the second brace.
    let Some((brace, _)) = json.match_indices('{').nth(1) else { return json };
    let (before, fields) = json.split_at(brace + 1);
    let reason = serde_json::Value::from(reason);
    format!("{before}\"poison_reason\":{reason},{fields}")
}

impl ErrorDetails {
    /// Why a poisoned message could not be processed, if the runtime knew: which handler was missing, and on which nodes.
    pub fn poison_reason(&self) -> Option<String> {
        let Self::Poison { message, .. } = self else { return None };
        let first: BTreeMap<String, Reason> = if message.starts_with('[') {
            serde_json::from_str::<Vec<_>>(message).ok()?.into_iter().next()?
        } else {
            serde_json::from_str(message).ok()?
        };
        first.into_values().next()?.poison_reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PoisonMessageType, WorkItem};

    fn item(reason: &str) -> WorkItem {
        WorkItem::CancelInstance { instance: "a{b".to_owned(), reason: reason.to_owned() }
    }

    fn poison(message: String) -> ErrorDetails {
        let message_type = PoisonMessageType::Orchestration { instance: "a".to_owned(), execution_id: 1 };
        ErrorDetails::Poison { attempt_count: 4, max_attempts: 3, message_type, message }
    }

    /// S1.12: the message is still the JSON of what was poisoned.
    #[test]
    fn a_reason_travels_with_the_messages() {
        let batch = vec![item("one"), item("two")];
        let json = with_poison_reason(serde_json::to_string(&batch).unwrap(), "no \"handler\"");
        assert_eq!(serde_json::from_str::<Vec<WorkItem>>(&json).unwrap(), batch);
        assert_eq!(poison(json).poison_reason().as_deref(), Some("no \"handler\""));
        let json = with_poison_reason(serde_json::to_string(&item("one")).unwrap(), "none");
        assert_eq!(serde_json::from_str::<WorkItem>(&json).unwrap(), item("one"));
        assert_eq!(poison(json).poison_reason().as_deref(), Some("none"));
    }

    #[test]
    fn without_a_reason_there_is_none() {
        for json in
            [serde_json::to_string(&[item("one")]).unwrap(), "[]".to_owned(), "decode error".to_owned()]
        {
            assert_eq!(poison(json).poison_reason(), None);
        }
        assert_eq!(with_poison_reason("[]".to_owned(), "why"), "[]");
        assert_eq!(ErrorDetails::orchestration_failed("no stock").poison_reason(), None);
    }
}
