//! Promotion and claims of instances.

use duroxide_core::WorkItem;

use super::{
    MemoryEngine,
    dead_letters::Undelivered,
    history::Execution,
    instance::Instance,
    instances::InstanceKey,
    lock::Lock,
    mailbox::{Extent, Place, is_start},
};
use crate::{
    DeadLetterQueue, OrchestrationClaim, StorePosition,
    store::{Claimed, DeadLetterNote, DeadLetterReason, InstanceOrder, bounds::UNDECODABLE_HIDDEN_FOR},
};

/// The version a claim shows if the start asked for none.
const UNKNOWN_VERSION: &str = "unknown";

/// The messages of a batch, read.
#[derive(Default)]
struct Batch {
    messages: Vec<(Place, WorkItem)>,
    undecodable: Vec<(Place, String)>,
    has_start: bool,
}

impl Batch {
    /// Name and version that the start of a new instance asks for; a `ContinueAsNew` outranks a client's start.
    fn start_target(&self) -> (String, Option<String>) {
        let items = || self.messages.iter().map(|(_, item)| item);
        let continues = items().find_map(|item| match item {
            WorkItem::ContinueAsNew { orchestration, version, .. } => Some((orchestration, version)),
            _ => None,
        });
        let starts = || {
            items().find_map(|item| match item {
                WorkItem::StartOrchestration { orchestration, version, .. } => Some((orchestration, version)),
                _ => None,
            })
        };
        continues.or_else(starts).map(|(name, version)| (name.clone(), version.clone())).unwrap_or_default()
    }
}

impl MemoryEngine {
    pub(super) fn promote_instances(&mut self) -> Vec<DeadLetterNote> {
        let mut notes = Vec::new();
        while let Some(key) = self.instances.next_due(self.now) {
            self.bury_orphans(key, &mut notes);
            // Filing the row again is what makes it ready.
            self.instances.change(key, self.now, |_| ());
        }
        notes
    }

    /// Moves the messages that waited too long for their instance to the dead letters (semantics 16.11).
    fn bury_orphans(&mut self, key: InstanceKey, notes: &mut Vec<DeadLetterNote>) {
        let ttl = self.instances.orphan_ttl();
        let orphaned = self.instances.get(key).filter(|instance| instance.is_orphaned());
        let places = orphaned.map(|instance| instance.mailbox.orphans(ttl, self.now)).unwrap_or_default();
        for place in places {
            notes.extend(self.bury(key, place, DeadLetterReason::NoInstance));
        }
    }

    fn bury(&mut self, key: InstanceKey, place: Place, reason: DeadLetterReason) -> Option<DeadLetterNote> {
        let instance = self.instances.get(key)?.id.clone();
        let message = self.instances.change(key, self.now, |instance| instance.mailbox.remove(place))??;
        let attempt_count = message.attempt_count;
        let undelivered = Undelivered::message(&instance, message);
        let id = self.dead_letters.insert(undelivered, reason.to_string(), attempt_count, self.now);
        Some(DeadLetterNote { id, queue: DeadLetterQueue::Orchestrator, instance: Some(instance), reason })
    }

    pub(super) fn take_instances(
        &mut self,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Claimed<OrchestrationClaim> {
        let mut claimed = Claimed { dead_letters: self.bury_stray_queues(), ..Claimed::default() };
        let routes = match order.only {
            None => self.instances.accepted_routes(order, &mut claimed.held_back),
            Some(_) => Vec::new(),
        };
        while claimed.items.len() < order.max {
            let next = match &order.only {
                None => self.instances.first_ready(&routes),
                Some(only) => self.instances.ready_named(only),
            };
            let Some(key) = next else { break };
            let suspect = self.instances.get(key).is_some_and(Instance::is_suspect);
            if suspect && claimed.items.len() >= order.free_slots {
                break;
            }
            self.instances.set_back(key);
            self.instances.show_due(key, self.now);
            let batch = self.read_batch(key, order);
            claimed.items.extend(self.lock_instance(key, &batch, order, nonce));
            for (place, error) in batch.undecodable {
                claimed.dead_letters.extend(self.put_aside(key, place, error));
            }
        }
        claimed
    }

    /// Nobody started the instance, and queue messages do not wait for that (semantics 16.11).
    fn bury_stray_queues(&mut self) -> Vec<DeadLetterNote> {
        let mut notes = Vec::new();
        for key in self.instances.take_stray_queues() {
            let places =
                self.instances.get(key).map(|instance| instance.mailbox.by_age()).unwrap_or_default();
            for place in places {
                notes.extend(self.bury(key, place, DeadLetterReason::NoInstance));
            }
        }
        // Each change filed the mailbox anew as long as something was left in it.
        self.instances.take_stray_queues();
        notes
    }

    fn read_batch(&self, key: InstanceKey, order: &InstanceOrder) -> Batch {
        let extent = if order.whole_mailbox { Extent::All } else { Extent::Bounded };
        let mut batch = Batch::default();
        let Some(instance) = self.instances.get(key) else { return batch };
        for place in instance.mailbox.batch(self.now, extent) {
            let Some(message) = instance.mailbox.get(place) else { continue };
            match serde_json::from_str(&message.data) {
                Ok(item) => {
                    batch.has_start |= is_start(message.kind);
                    batch.messages.push((place, item));
                }
                Err(error) => batch.undecodable.push((place, error.to_string())),
            }
        }
        batch
    }

    fn lock_instance(
        &mut self,
        key: InstanceKey,
        batch: &Batch,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Option<OrchestrationClaim> {
        let known = self.instances.get(key)?.is_known();
        if batch.messages.is_empty() || !(known || batch.has_start) {
            self.instances.change(key, self.now, |_| ());
            return None;
        }
        let lock = Lock::new(key.0, nonce, self.now, order.lock_timeout, order.node);
        let lock_token = lock.token().to_owned();
        self.instances.change(key, self.now, |instance| {
            instance.suspect = instance.is_suspect();
            instance.losses = instance.losses.claimed_again(instance.lock.is_some());
            instance.lock = Some(lock);
            let places = batch.messages.iter().map(|(place, _)| *place);
            instance.mailbox.lock(places.clone());
            let attempt_count = places.map(|place| instance.mailbox.count_attempt(place)).max();
            claim(key, instance, batch, lock_token, attempt_count.unwrap_or_default())
        })
    }

    /// Counts and hides a message that cannot be decoded; after too many attempts it becomes a dead letter.
    fn put_aside(&mut self, key: InstanceKey, place: Place, error: String) -> Option<DeadLetterNote> {
        let until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
        let attempt_count = self.instances.change(key, self.now, |instance| {
            instance.mailbox.hide_undecodable(place, until);
            instance.mailbox.count_attempt(place)
        })?;
        let exhausted = attempt_count > self.max_attempts;
        exhausted.then(|| self.bury(key, place, DeadLetterReason::Undeserializable { error })).flatten()
    }
}

fn claim(
    key: InstanceKey,
    instance: &Instance,
    batch: &Batch,
    lock_token: String,
    attempt_count: u32,
) -> OrchestrationClaim {
    let (orchestration_name, version) =
        if instance.is_known() { instance.identity() } else { batch.start_target() };
    let current = instance.current();
    OrchestrationClaim {
        instance: instance.id.clone(),
        orchestration_name,
        version: version.unwrap_or_else(|| UNKNOWN_VERSION.to_owned()),
        execution_id: instance.execution_id,
        messages: batch.messages.iter().map(|(_, item)| item.clone()).collect(),
        lock_token,
        attempt_count,
        losses: Some(instance.losses),
        position: Some(StorePosition {
            incarnation: key.0,
            last_event_id: current.and_then(Execution::last_event_id).unwrap_or_default(),
            turns: current.map_or(0, Execution::turns),
        }),
        loaded: None,
    }
}
