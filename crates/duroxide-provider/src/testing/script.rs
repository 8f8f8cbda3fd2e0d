//! The turns of a correct runtime.

use std::collections::BTreeSet;

use duroxide_core::{EventKind, WorkItem};
use semver::Version;

use super::{Turn, dice::Dice, items};
use crate::OrchestrationClaim;

/// The driver's state of an instance.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) execution_id: u64,
    pub(super) activities: BTreeSet<u64>,
    pub(super) timers: BTreeSet<u64>,
    pub(super) children: BTreeSet<u64>,
    pub(super) parent: Option<(String, u64, u64)>,
    pub(super) ended: bool,
    pub(super) awaits_successor: bool,
}

/// A turn being played.
pub(super) struct Script {
    pub(super) turn: Turn,
    pub(super) model: Model,
    pub(super) instance: String,
}

impl Script {
    fn event(&mut self, source: Option<u64>, kind: EventKind) {
        self.change(|turn| turn.event(source, kind));
    }

    fn change(&mut self, change: impl FnOnce(Turn) -> Turn) {
        let turn = std::mem::replace(&mut self.turn, Turn::after("", 0, 0));
        self.turn = change(turn);
    }

    /// Records the messages that still have an effect.
    pub(super) fn deliver(&mut self, messages: &[WorkItem]) {
        let current = self.model.execution_id;
        for message in messages {
            match message {
                WorkItem::ActivityCompleted { execution_id, id, result, .. }
                    if *execution_id == current && self.model.activities.remove(id) =>
                {
                    self.event(Some(*id), EventKind::ActivityCompleted { result: result.clone() });
                }
                WorkItem::ActivityFailed { execution_id, id, details, .. }
                    if *execution_id == current && self.model.activities.remove(id) =>
                {
                    self.event(Some(*id), EventKind::ActivityFailed { details: details.clone() });
                }
                WorkItem::TimerFired { execution_id, id, fire_at_ms, .. }
                    if *execution_id == current && self.model.timers.remove(id) =>
                {
                    self.event(Some(*id), EventKind::TimerFired { fire_at_ms: *fire_at_ms });
                }
                WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result, .. }
                    if *parent_execution_id == current && self.model.children.remove(parent_id) =>
                {
                    let kind = EventKind::SubOrchestrationCompleted { result: result.clone() };
                    self.event(Some(*parent_id), kind);
                }
                WorkItem::ExternalRaised { name, data, .. } => {
                    self.event(None, EventKind::ExternalEvent { name: name.clone(), data: data.clone() });
                }
                WorkItem::QueueMessage { name, data, .. } => {
                    let kind = EventKind::QueueEventDelivered { name: name.clone(), data: data.clone() };
                    self.event(None, kind);
                }
                _ => {}
            }
        }
    }

    pub(super) fn act(&mut self, dice: &mut Dice) {
        for _ in 0..dice.roll(4) {
            self.act_once(dice);
        }
        match dice.roll(8) {
            0 => self.complete(),
            1 => {
                self.end_execution();
                let execution_id = self.model.execution_id + 1;
                let parent = self.model.parent.clone();
                let next = Model { execution_id, parent, ..Model::default() };
                let seed = started(&self.instance, &next).set("seed", "1");
                self.change(|turn| turn.continue_with(seed));
                self.model = next;
            }
            2 if dice.one_in(2) => {
                self.end_execution();
                let item = items::continue_as_new(&self.instance, None);
                self.change(|turn| turn.continue_as_new().send(item));
                self.model.awaits_successor = true;
            }
            _ => {}
        }
    }

    fn act_once(&mut self, dice: &mut Dice) {
        let (tag, session) = (["gpu", "cpu"], ["s1", "s2"]);
        match dice.roll(9) {
            0..=1 => {
                let tag = dice.pick(&tag).copied().filter(|_| dice.one_in(3));
                let session = dice.pick(&session).copied().filter(|_| dice.one_in(3));
                self.change(|turn| turn.routed_activity(tag, session));
                self.model.activities.insert(self.turn.last_event_id());
            }
            2..=3 => {
                let at = 1_000_000 + dice.roll(120_000);
                self.change(|turn| turn.timer(at));
                self.model.timers.insert(self.turn.last_event_id());
            }
            4 if self.model.parent.is_none() => {
                let next = self.turn.last_event_id() + 1;
                let suffix = format!("sub::{}_{next}", self.model.execution_id);
                self.change(|turn| turn.child(&suffix));
                self.model.children.insert(next);
            }
            5 => {
                let key = format!("k{}", dice.roll(3));
                self.change(|turn| if dice.one_in(3) { turn.clear(&key) } else { turn.set(&key, "v") });
            }
            6 => self.change(|turn| turn.status(Some("busy").filter(|_| dice.one_in(2)))),
            7 if dice.one_in(2) => {
                if let Some(activity) = self.model.activities.first().copied() {
                    self.change(|turn| turn.stop_activity(activity));
                }
            }
            7 => self.drop_activity(),
            8 => {
                if let Some(timer) = self.model.timers.pop_first() {
                    self.change(|turn| turn.cancel_timer(timer));
                }
            }
            _ => {
                if dice.one_in(2) {
                    self.event(None, EventKind::KeyValuesCleared);
                }
            }
        }
    }

    fn drop_activity(&mut self) {
        if let Some(activity) = self.model.activities.pop_first() {
            let reason = "dropped_future".to_owned();
            self.event(Some(activity), EventKind::ActivityCancelRequested { reason });
            self.change(|turn| turn.cancel_activity(activity));
        }
    }

    fn complete(&mut self) {
        self.end_execution();
        self.change(|turn| turn.complete("done"));
        if let Some((parent_instance, parent_execution_id, parent_id)) = self.model.parent.clone() {
            let result = "done".to_owned();
            let report =
                WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result };
            self.change(|turn| turn.send(report));
        }
        self.model.ended = true;
    }

    /// Open calls of an ended execution are removed from the store.
    fn end_execution(&mut self) {
        for activity in std::mem::take(&mut self.model.activities) {
            self.change(|turn| turn.cancel_activity(activity));
        }
        for timer in std::mem::take(&mut self.model.timers) {
            self.change(|turn| turn.cancel_timer(timer));
        }
    }
}

pub(super) fn first_turn(claim: &OrchestrationClaim) -> (Turn, Model) {
    let link = claim.messages.iter().find_map(WorkItem::parent_link);
    let parent = link.map(|link| (link.instance, link.execution_id.unwrap_or(1), link.event_id));
    let model = Model { execution_id: claim.execution_id, parent, ..Model::default() };
    (started(&claim.instance, &model), model)
}

/// The first turn of an execution, pinned by its number.
pub(super) fn started(instance: &str, model: &Model) -> Turn {
    let turn = Turn::start_of(instance, model.execution_id);
    let turn = match &model.parent {
        Some((parent, execution, call)) => turn.of_parent(parent, *execution, *call),
        None => turn,
    };
    turn.pinned(Version::new(1 + model.execution_id % 2, 0, 0))
}
