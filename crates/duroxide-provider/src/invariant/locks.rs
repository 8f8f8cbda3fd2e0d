//! Invariant I08: locks, their tokens and their messages.

use std::collections::BTreeSet;

use super::{Violations, view::InstanceView};
use crate::store::{InstanceSnapshot, StoreSnapshot};

/// I08: no two locks share a token, so a token never has two holders.
pub(super) fn lock_exclusive(snapshot: &StoreSnapshot, found: &mut Violations) {
    let instance_tokens = |row: &InstanceSnapshot| row.lock.iter().map(|lock| lock.token.clone()).collect();
    let activity_tokens = |row: &InstanceSnapshot| {
        row.activities.iter().filter_map(|row| row.lock.as_ref()).map(|lock| lock.token.clone()).collect()
    };
    unique(snapshot, instance_tokens, found);
    unique(snapshot, activity_tokens, found);
}

fn unique(
    snapshot: &StoreSnapshot,
    tokens: impl Fn(&InstanceSnapshot) -> Vec<String>,
    found: &mut Violations,
) {
    let mut seen = BTreeSet::new();
    for row in &snapshot.instances {
        for token in tokens(row) {
            if let Some(token) = seen.replace(token) {
                found.add("I08 LockExclusive", &row.instance, format!("token {token} is used twice"));
            }
        }
    }
}

/// I08: a lock holds the messages of its turn, and messages are held only by a lock.
pub(super) fn lock_holds_messages(instance: &InstanceView<'_>, found: &mut Violations) {
    let held = instance.row.messages.iter().filter(|message| message.locked).count();
    match &instance.row.lock {
        None if held > 0 => {
            found.add("I08 LockExclusive", instance.id(), format!("{held} messages are held by no lock"));
        }
        Some(lock) if held == 0 => {
            let detail = format!("the lock until {} holds no message", lock.until.as_millis());
            found.add("I08 LockExclusive", instance.id(), detail);
        }
        _ => {}
    }
}
