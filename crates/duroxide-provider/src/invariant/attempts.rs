//! Invariant I12: attempts are counted.

use super::{Violations, view::InstanceView};

/// I12: a locked row has been fetched at least once.
pub(super) fn attempts_counted(instance: &InstanceView<'_>, found: &mut Violations) {
    let uncounted =
        instance.row.messages.iter().filter(|message| message.locked && message.attempt_count == 0);
    for message in uncounted {
        let detail =
            format!("a locked message has no attempt: {}", message.key.as_deref().unwrap_or("no key"));
        found.add("I12 AttemptsMonotone", instance.id(), detail);
    }
    let uncounted = instance.row.activities.iter().filter(|row| row.lock.is_some() && row.attempt_count == 0);
    for activity in uncounted {
        let detail = format!("locked activity {} has no attempt", activity.activity_id);
        found.add("I12 AttemptsMonotone", instance.id(), detail);
    }
}
