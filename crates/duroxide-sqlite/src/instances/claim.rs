//! Claiming instances: those that have been ready longest, each route one index seek.

use std::{collections::HashSet, sync::Arc};

use duroxide_core::{INITIAL_EXECUTION_ID, WorkItem};
use duroxide_provider::{
    OrchestrationClaim, StorePosition,
    store::{
        Claimed, DeadLetterNote, DeadLetterReason, HeldBack, InstanceOrder, StoreFailure,
        bounds::UNDECODABLE_HIDDEN_FOR, lock_token,
    },
};

use super::{Batch, InstanceRow, Kept, Lock, lock::lease};
use crate::{
    SqliteEngine,
    db::{micros, time, unsigned},
    mailbox::{Message, is_start},
    nodes, reads,
    routes::ORPHANS,
};

/// The next route on which something is ready: routes without ready instances are never visited.
const NEXT_READY_ROUTE: &str =
    "SELECT route FROM instance WHERE ready IS NOT NULL AND route > ?1 ORDER BY route LIMIT 1";
const ANY_READY: &str = "SELECT 1 FROM instance WHERE ready IS NOT NULL LIMIT 1";
const READY_ON_ROUTE: &str =
    "SELECT ready, id FROM instance WHERE route = ?1 AND ready IS NOT NULL ORDER BY ready LIMIT ?2";
const READY_NAMED: &str =
    "SELECT id FROM instance WHERE instance_id = ?1 AND ready IS NOT NULL AND route <> ?2";
const LOCK: &str =
    "UPDATE instance SET ready = NULL, lock_token = ?2, lock_until = ?3, wake_at = ?3, lease = ?4,
        batch = ?5, batch_due_at = ?6, batch_seq = ?7, suspect = ?8, node = ?9, lost = ?10
    WHERE id = ?1";
const STRAYS: &str = "SELECT id FROM instance WHERE route = ?1 AND ready IS NOT NULL";

/// What came of a candidate.
enum Candidate {
    Claimed(Box<OrchestrationClaim>),
    /// Nothing of it can be handed out now.
    Unfit,
    /// It may be poison and there is no free slot: the claim stops in front of it.
    MustWait,
}

impl SqliteEngine {
    pub(crate) fn claim_ready_instances(
        &mut self,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Result<Claimed<OrchestrationClaim>, StoreFailure> {
        let mut claimed = Claimed::default();
        let mut visited = HashSet::new();
        // Strays are buried once, on the first look: what a claim makes stray is left to the next.
        let mut first_route = ORPHANS;
        while claimed.items.len() < order.max {
            let wanted = order.max - claimed.items.len();
            let mut candidates = match &order.only {
                None => self.ready_instances(order, first_route, wanted, &mut claimed)?,
                Some(only) => self.ready_instance(only, &mut claimed)?,
            };
            first_route = ORPHANS + 1;
            let were_all = candidates.len() <= wanted;
            candidates.truncate(wanted);
            let fresh: Vec<i64> = candidates.into_iter().filter(|id| visited.insert(*id)).collect();
            let none_is_new = fresh.is_empty();
            claimed.items.reserve_exact(fresh.len());
            for id in fresh {
                let has_slot = claimed.items.len() < order.free_slots;
                match self.claim_instance(id, order, nonce, has_slot, &mut claimed.dead_letters)? {
                    Candidate::Claimed(claim) => claimed.items.push(*claim),
                    Candidate::Unfit => {}
                    Candidate::MustWait => return Ok(claimed),
                }
            }
            claimed.took_all = were_all;
            if were_all || none_is_new {
                break;
            }
        }
        Ok(claimed)
    }

    pub(crate) fn any_instance_ready(&self) -> Result<bool, StoreFailure> {
        self.db.exists(ANY_READY, [])
    }

    /// Ready instances that the order accepts, longest ready first, and one more than are wanted if there are more. Strays
    /// stand on the first of all routes and become dead letters on the way.
    fn ready_instances(
        &mut self,
        order: &InstanceOrder,
        first_route: i64,
        wanted: usize,
        claimed: &mut Claimed<OrchestrationClaim>,
    ) -> Result<Vec<i64>, StoreFailure> {
        // What a claim passes over it passes over each time it looks.
        claimed.held_back = HeldBack::default();
        let limit = wanted.saturating_add(1);
        let on_each = i64::try_from(limit).unwrap_or(i64::MAX);
        let passed_over_max = i64::try_from(order.max).unwrap_or(i64::MAX);
        let mut found: Vec<(i64, i64)> = Vec::new();
        let mut route = first_route - 1;
        while let Some(next) = self.db.first(NEXT_READY_ROUTE, [route], |row| row.get(0))? {
            route = next;
            if route == ORPHANS {
                claimed.dead_letters.extend(self.bury_strays()?);
                continue;
            }
            match self.routes.held_back_by(&self.db, route, order)? {
                Some(by) => {
                    let passed_over = self.db.all(READY_ON_ROUTE, (route, passed_over_max), |_| Ok(()))?;
                    claimed.held_back.count(by, passed_over.len());
                }
                None => found.extend(
                    self.db.all(READY_ON_ROUTE, (route, on_each), |row| Ok((row.get(0)?, row.get(1)?)))?,
                ),
            }
        }
        found.sort_unstable();
        Ok(found.into_iter().take(limit).map(|(_, id)| id).collect())
    }

    /// The instance of this id, if it is ready.
    fn ready_instance(
        &mut self,
        instance: &str,
        claimed: &mut Claimed<OrchestrationClaim>,
    ) -> Result<Vec<i64>, StoreFailure> {
        claimed.dead_letters.extend(self.bury_strays()?);
        self.db.all(READY_NAMED, (instance, ORPHANS), |row| row.get(0))
    }

    fn claim_instance(
        &mut self,
        id: i64,
        order: &InstanceOrder,
        nonce: u128,
        has_slot: bool,
        notes: &mut Vec<DeadLetterNote>,
    ) -> Result<Candidate, StoreFailure> {
        let Some(mut kept) = self.instance_with_execution(id)? else { return Ok(Candidate::Unfit) };
        // A lease that ended leaves its token.
        kept.row.suspect |= kept.row.lock.is_some();
        if kept.row.suspect && !has_slot {
            return Ok(Candidate::MustWait);
        }
        let waiting = kept.take_waiting();
        let are_all = waiting.is_some();
        let (mut messages, items) = match waiting {
            Some(waiting) => {
                waiting.into_iter().map(|(message, item)| (message, Arc::unwrap_or_clone(item))).unzip()
            }
            None => self.decodable_messages(&kept.row, order.whole_mailbox, notes)?,
        };
        let startable = kept.row.known || messages.iter().any(|message| is_start(message.kind));
        if messages.is_empty() || !startable {
            if let Some(row) = self.instance(id)? {
                self.settle(&row)?;
            }
            return Ok(Candidate::Unfit);
        }
        self.count_lost_attempt(&kept.row, &mut messages)?;
        let batch = self.take_messages(id, &messages, are_all)?;
        let lock_token = self.lock_instance(&mut kept.row, batch, order, nonce)?;
        let claim = self.describe_claim(&kept, items, lock_token, &messages)?;
        self.kept.keep(kept);
        Ok(Candidate::Claimed(Box::new(claim)))
    }

    /// The visible messages with what they say. Those that cannot be decoded are counted, hidden and left out, or
    /// moved to the dead letters once they were tried too often (16.10).
    fn decodable_messages(
        &mut self,
        row: &InstanceRow,
        whole_mailbox: bool,
        notes: &mut Vec<DeadLetterNote>,
    ) -> Result<(Vec<Message>, Vec<WorkItem>), StoreFailure> {
        let visible = self.visible_messages(row.id, whole_mailbox)?;
        let mut good = (Vec::with_capacity(visible.len()), Vec::with_capacity(visible.len()));
        for message in visible {
            match serde_json::from_str(&message.data) {
                Ok(item) => {
                    good.0.push(message);
                    good.1.push(item);
                }
                Err(error) => notes.extend(self.put_aside(row, &message, &error)?),
            }
        }
        Ok(good)
    }

    fn put_aside(
        &mut self,
        row: &InstanceRow,
        message: &Message,
        error: &serde_json::Error,
    ) -> Result<Option<DeadLetterNote>, StoreFailure> {
        let attempt_count = message.attempt_count.saturating_add(1);
        if attempt_count <= self.max_attempts {
            let until = self.now.saturating_add(UNDECODABLE_HIDDEN_FOR);
            self.hide_undecodable(row.id, message, until)?;
            return Ok(None);
        }
        let reason = DeadLetterReason::Undeserializable { error: error.to_string() };
        self.delete_message(row.id, message)?;
        self.bury_message(&row.instance_id, message, reason, attempt_count).map(Some)
    }

    /// Locks an instance and with it the messages a turn gets.
    fn lock_instance(
        &mut self,
        row: &mut InstanceRow,
        batch: Batch,
        order: &InstanceOrder,
        nonce: u128,
    ) -> Result<String, StoreFailure> {
        let token = lock_token(unsigned(row.id), nonce);
        row.losses = row.losses.claimed_again(row.lock.is_some());
        let until = micros(self.now.saturating_add(order.lock_timeout));
        let columns = (
            row.id,
            &token,
            until,
            lease(order.lock_timeout),
            batch.number,
            batch.last_due_at,
            batch.last_seq,
            row.suspect,
            nodes::column(order.node),
            row.losses.lost,
        );
        self.db.execute(LOCK, columns)?;
        row.ready = None;
        row.wake_at = Some(until);
        row.lock = Some(Lock { token: token.clone(), until: time(until) });
        row.batch = Some(batch);
        Ok(token)
    }

    fn describe_claim(
        &self,
        Kept { row, execution, .. }: &Kept,
        items: Vec<WorkItem>,
        lock_token: String,
        messages: &[Message],
    ) -> Result<OrchestrationClaim, StoreFailure> {
        let (name, version) = match &row.name {
            Some(name) => (name.clone(), row.version.clone()),
            None => self.identity_of_unnamed(row.id, row.known.then_some(row.execution_id), &items)?,
        };
        let attempts = messages.iter().map(|message| message.attempt_count).max().unwrap_or(0);
        Ok(OrchestrationClaim {
            instance: row.instance_id.clone(),
            orchestration_name: name,
            version: version.unwrap_or_else(|| "unknown".to_owned()),
            execution_id: if row.known { row.execution_id } else { INITIAL_EXECUTION_ID },
            messages: items,
            lock_token,
            attempt_count: attempts.saturating_add(1),
            losses: Some(row.losses),
            position: Some(StorePosition {
                incarnation: unsigned(row.id),
                last_event_id: execution.as_ref().map_or(0, |execution| execution.last_event_id),
                turns: execution.as_ref().map_or(0, |execution| execution.turns),
            }),
            loaded: None,
        })
    }

    /// Name and version of an instance that was never named: of its execution's first event, or of its start.
    fn identity_of_unnamed(
        &self,
        id: i64,
        execution_id: Option<u64>,
        items: &[WorkItem],
    ) -> Result<(String, Option<String>), StoreFailure> {
        match execution_id {
            Some(execution_id) => reads::identity_in_history(&self.db, id, execution_id),
            None => Ok(identity_of_start(items).unwrap_or_default()),
        }
    }

    /// Moves the messages of mailboxes that hold only queue messages to the dead letters: they wait for no start (16.11).
    fn bury_strays(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure> {
        let mut strays: Vec<i64> = self.db.all(STRAYS, [ORPHANS], |row| row.get(0))?;
        strays.sort_unstable();
        let mut notes = Vec::new();
        for id in strays {
            let Some(row) = self.instance(id)? else { continue };
            notes.extend(self.bury_older_than(&row, i64::MAX)?);
            if let Some(row) = self.instance(id)? {
                self.settle_at_the_back(&row)?;
            }
        }
        Ok(notes)
    }
}

/// A `ContinueAsNew` outranks a client's start whatever their order (2.3).
fn identity_of_start(items: &[WorkItem]) -> Option<(String, Option<String>)> {
    let continued = items.iter().find_map(|item| match item {
        WorkItem::ContinueAsNew { orchestration, version, .. } => {
            Some((orchestration.clone(), version.clone()))
        }
        _ => None,
    });
    continued.or_else(|| {
        items.iter().find_map(|item| match item {
            WorkItem::StartOrchestration { orchestration, version, .. } => {
                Some((orchestration.clone(), version.clone()))
            }
            _ => None,
        })
    })
}
