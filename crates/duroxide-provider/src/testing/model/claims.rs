//! Promotion and claims.

use std::collections::BTreeMap;

use duroxide_core::{Timestamp, WorkItem};

use super::{
    ModelEngine, activities::Activity, dead_letters::Undelivered, instance::Execution, leases::Lock,
};
use crate::{
    DeadLetterQueue, OrchestrationClaim, StorePosition, WorkClaim,
    store::{
        ActivityFetch, Claimed, DeadLetterNote, DeadLetterReason, HeldBackBy, InstanceFetch, InstanceNeeds,
        MessageKind,
        bounds::{ORPHAN_MESSAGE_TTL_DEFAULT, UNDECODABLE_HIDDEN_FOR},
    },
};

impl ModelEngine {
    pub(super) fn promote_all(&mut self) -> Vec<DeadLetterNote> {
        let now = self.now;
        self.activities.values_mut().for_each(|activity| activity.settle(now));
        let mut due: Vec<_> =
            self.instances.iter().filter_map(|(key, instance)| Some((instance.look_at?, *key))).collect();
        due.retain(|(at, _)| *at <= now);
        due.sort_unstable();
        let mut notes = Vec::new();
        for (_, key) in due {
            let instance = self.instances.get_mut(&key).unwrap();
            if instance.is_orphaned() {
                let is_too_old = |age: Timestamp| age.saturating_add(ORPHAN_MESSAGE_TTL_DEFAULT) <= now;
                let mut oldest = instance.by_age();
                oldest.retain(|number| is_too_old(instance.message(*number).age()));
                for number in oldest {
                    notes.push(self.dead_letter_message(key, number, DeadLetterReason::NoInstance));
                }
            }
            self.settle(key);
        }
        notes
    }

    /// Queue messages do not wait for an instance that was never started.
    fn dead_letter_strays(&mut self) -> Vec<DeadLetterNote> {
        let mut notes = Vec::new();
        let strays = self.instances.iter().filter(|(_, instance)| instance.is_stray);
        for key in strays.map(|(key, _)| *key).collect::<Vec<_>>() {
            for number in self.instances[&key].by_age() {
                notes.push(self.dead_letter_message(key, number, DeadLetterReason::NoInstance));
            }
            self.settle(key);
        }
        notes
    }

    pub(super) fn take_instances(
        &mut self,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Claimed<OrchestrationClaim> {
        let mut claimed = Claimed { dead_letters: self.dead_letter_strays(), ..Claimed::default() };
        self.count_held_back_instances(fetch, &mut claimed);
        while claimed.items.len() < fetch.max {
            let Some(key) = self.first_ready(fetch) else { break };
            let instance = self.instances.get_mut(&key).unwrap();
            // A lock that is left on a ready instance has ended: its turn may have crashed its process.
            let may_be_poison = instance.may_be_poison || instance.lock.is_some();
            if may_be_poison && claimed.items.len() >= fetch.free_slots {
                break;
            }
            instance.claimed_as = instance.ready.take().map(|(_, needs)| needs).unwrap_or_default();
            let taken = instance.claimable(self.now, fetch.whole_mailbox);
            let readable = self.read_messages(key, &taken, &mut claimed.dead_letters);
            let is_early = !self.rounds_of.contains(&key)
                && readable.iter().all(|(number, _)| self.early_messages.contains(number));
            if let Some(claim) = self.lock_instance(key, readable, fetch, nonce) {
                claimed.early.extend((is_early && !may_be_poison).then_some(claimed.items.len()));
                claimed.items.push(claim);
            }
            self.settle(key);
        }
        claimed
    }

    /// The longest-ready instance that the fetch accepts.
    fn first_ready(&self, fetch: &InstanceFetch) -> Option<u64> {
        let is_accepted = |id: &String, needs: &InstanceNeeds| match &fetch.only {
            Some(only) => only == id,
            None => fetch.accepts(needs.name.as_deref(), needs.version.as_deref(), needs.pinned),
        };
        let ready = self.instances.iter().filter_map(|(key, instance)| {
            let (place, needs) = instance.ready.as_ref()?;
            is_accepted(&instance.id, needs).then_some((*place, *key))
        });
        ready.min().map(|(_, key)| key)
    }

    /// Counts, for each kind of work that the fetch skips, at most as many as it asks for.
    fn count_held_back_instances(&self, fetch: &InstanceFetch, claimed: &mut Claimed<OrchestrationClaim>) {
        let mut counts = BTreeMap::<&InstanceNeeds, usize>::new();
        for (_, needs) in self.instances.values().filter_map(|instance| instance.ready.as_ref()) {
            *counts.entry(needs).or_default() += 1;
        }
        for (needs, count) in counts.into_iter().filter(|_| fetch.only.is_none()) {
            let by = fetch.holds_back(needs.name.as_deref(), needs.version.as_deref(), needs.pinned);
            by.into_iter().for_each(|by| claimed.held_back.count(by, count.min(fetch.max)));
        }
    }

    /// The messages among these that can be decoded. The others are hidden.
    fn read_messages(
        &mut self,
        key: u64,
        taken: &[u64],
        notes: &mut Vec<DeadLetterNote>,
    ) -> Vec<(u64, WorkItem)> {
        let mut readable = Vec::new();
        for number in taken {
            let message = self.instances.get_mut(&key).unwrap().message(*number);
            match serde_json::from_str(&message.data) {
                Ok(item) => readable.push((*number, item)),
                Err(error) => notes.extend(self.hide_undecodable(key, *number, error.to_string())),
            }
        }
        readable
    }

    /// Counts and hides a message that cannot be decoded; after too many attempts it becomes a dead letter. It is no queue
    /// message any more: nothing waits behind it.
    fn hide_undecodable(&mut self, key: u64, number: u64, error: String) -> Option<DeadLetterNote> {
        let message = self.instances.get_mut(&key).unwrap().message(number);
        message.attempts += 1;
        message.locked = false;
        message.hidden_until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
        if message.kind == MessageKind::Queue {
            message.kind = MessageKind::Other;
        }
        let reason = DeadLetterReason::Undeserializable { error };
        (message.attempts > self.max_attempts).then(|| self.dead_letter_message(key, number, reason))
    }

    fn lock_instance(
        &mut self,
        key: u64,
        messages: Vec<(u64, WorkItem)>,
        fetch: &InstanceFetch,
        nonce: u128,
    ) -> Option<OrchestrationClaim> {
        let instance = self.instances.get_mut(&key).unwrap();
        let numbers: Vec<u64> = messages.iter().map(|(number, _)| *number).collect();
        let has_start = numbers.iter().any(|number| instance.message(*number).is_start());
        if messages.is_empty() || !(instance.is_known() || has_start) {
            return None;
        }
        instance.may_be_poison |= instance.lock.is_some();
        instance.losses.lost += u32::from(instance.lock.is_some());
        let lock = Lock::new(key, nonce, self.now, fetch.lock_timeout, fetch.node);
        let lock_token = lock.token.clone();
        instance.lock = Some(lock);
        instance.hold(&numbers);
        let attempt_count = numbers.iter().map(|number| instance.message(*number).attempts).max();
        let items: Vec<WorkItem> = messages.into_iter().map(|(_, item)| item).collect();
        let (orchestration_name, version) =
            if instance.is_known() { instance.identity() } else { start_target(&items) };
        let current = instance.current();
        Some(OrchestrationClaim {
            instance: instance.id.clone(),
            orchestration_name,
            version: version.unwrap_or_else(|| "unknown".to_owned()),
            execution_id: instance.execution_id,
            messages: items,
            lock_token,
            attempt_count: attempt_count.unwrap_or_default(),
            losses: Some(instance.losses),
            position: Some(StorePosition {
                incarnation: key,
                last_event_id: current.and_then(Execution::last_event_id).unwrap_or_default(),
                turns: current.map_or(0, |current| current.turns),
            }),
            loaded: None,
        })
    }

    pub(super) fn take_activities(&mut self, fetch: &ActivityFetch, nonce: u128) -> Claimed<WorkClaim> {
        let mut claimed = Claimed::default();
        self.count_held_back_activities(fetch, &mut claimed);
        while claimed.items.len() < fetch.max {
            let Some(key) = self.first_ready_activity(fetch) else { break };
            let activity = self.activities.get_mut(&key).unwrap();
            match serde_json::from_str(&activity.row.data) {
                Ok(_) if activity.attempts > 0 && claimed.items.len() >= fetch.free_slots => break,
                Ok(item) => claimed.items.push(self.lock_activity(key, item, fetch, nonce)),
                Err(error) => {
                    claimed.dead_letters.extend(self.dead_letter_undecodable(key, error.to_string()));
                }
            }
        }
        claimed
    }

    fn first_ready_activity(&self, fetch: &ActivityFetch) -> Option<u64> {
        let only = fetch.only.as_ref().map(|only| self.find_activity(only));
        let is_accepted = |key: u64, activity: &Activity| match only {
            Some(only) => only == Some(key),
            None => {
                fetch.accepts(&activity.row.name, activity.row.tag.as_deref())
                    && self.admits(activity.row.session_id.as_ref(), fetch.session.as_ref())
            }
        };
        let ready = self.activities.iter().filter(|(_, activity)| activity.waits_until.is_none());
        ready.filter(|(key, activity)| is_accepted(**key, activity)).map(|(key, _)| *key).next()
    }

    /// Activities of sessions are not counted.
    fn count_held_back_activities(&self, fetch: &ActivityFetch, claimed: &mut Claimed<WorkClaim>) {
        let mut counts = BTreeMap::<(&str, Option<&str>), usize>::new();
        for activity in self.activities.values() {
            let row = &activity.row;
            if activity.waits_until.is_none() && row.session_id.is_none() && fetch.only.is_none() {
                *counts.entry((&row.name, row.tag.as_deref())).or_default() += 1;
            }
        }
        for (_, count) in counts.into_iter().filter(|((name, tag), _)| fetch.holds_back(name, *tag)) {
            claimed.held_back.count(HeldBackBy::Activity, count.min(fetch.max));
        }
    }

    fn lock_activity(&mut self, key: u64, item: WorkItem, fetch: &ActivityFetch, nonce: u128) -> WorkClaim {
        let activity = self.activities.get_mut(&key).unwrap();
        let claimed_before = std::mem::replace(&mut activity.claimed, true);
        activity.attempts += 1;
        activity.losses.lost += u32::from(activity.lock.is_some());
        let lock = Lock::new(key, nonce, self.now, fetch.lock_timeout, fetch.node);
        let lock_token = lock.token.clone();
        activity.lock = Some(lock);
        activity.settle(self.now);
        let claim = WorkClaim {
            item,
            lock_token,
            attempt_count: activity.attempts,
            losses: Some(activity.losses),
            claimed_before,
            stop_requested: activity.stop_requested,
            incarnation: Some(activity.instance),
        };
        if let (Some(session), Some(by)) = (activity.row.session_id.clone(), &fetch.session) {
            self.claim_session(&session, by);
        }
        claim
    }

    /// Counts and hides an activity that cannot be decoded; after too many attempts it becomes a dead letter.
    fn dead_letter_undecodable(&mut self, key: u64, error: String) -> Option<DeadLetterNote> {
        let activity = self.activities.get_mut(&key).unwrap();
        activity.attempts += 1;
        activity.hidden_until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
        activity.settle(self.now);
        if activity.attempts <= self.max_attempts {
            return None;
        }
        let activity = self.remove_activity(key);
        let (instance, reason) =
            (activity.row.instance.clone(), DeadLetterReason::Undeserializable { error });
        let id = self.bury(Undelivered::Activity(activity.row), &reason.to_string(), activity.attempts);
        Some(DeadLetterNote { id, queue: DeadLetterQueue::Worker, instance: Some(instance), reason })
    }
}

/// Name and version that the start of a new instance asks for; a `ContinueAsNew` outranks a client's start.
fn start_target(items: &[WorkItem]) -> (String, Option<String>) {
    let continues = items.iter().find_map(|item| match item {
        WorkItem::ContinueAsNew { orchestration, version, .. } => Some((orchestration, version)),
        _ => None,
    });
    let mut starts = items.iter().filter_map(|item| match item {
        WorkItem::StartOrchestration { orchestration, version, .. } => Some((orchestration, version)),
        _ => None,
    });
    let target = continues.or_else(|| starts.next());
    target.map(|(name, version)| (name.clone(), version.clone())).unwrap_or_default()
}
