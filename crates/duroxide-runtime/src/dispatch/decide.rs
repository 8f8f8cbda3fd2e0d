//! Decides about a claimed instance before any code runs (2.2).
//!
//! The checks run in a fixed order, and the first one that applies decides. They are pure: they take the claim and its
//! history and return a [`Decision`] (S0.21). Only the dispatcher calls the provider.

mod end_target;
mod exhausted;
mod history;
mod lacking_nodes;
mod messages;
mod stranded;
#[cfg(test)]
mod tests;

use std::fmt;

use duroxide_core::{
    Event, EventKind, EventRole, OrchestrationHandlerRef, WorkItem, current_build_version,
    engine::{Ending, Seed, cancels},
};
use duroxide_provider::{JoinedNode, SemverRange, VersionTriple};

use end_target::end_target;
use exhausted::{poison, poison_unreadable, unsupported};
use history::{later_pin, replays, unreadable_pin};
use messages::{cancellation, cancellations};

pub(crate) use history::describe_ranges;
pub(super) use history::{incompatible_pin, is_seed_only, recorded_handler, recorded_parent, recorded_trace};
pub(super) use lacking_nodes::{joined_nodes, lacking};
pub(super) use messages::{is_wake_up, start_item, successor_item, wanted_handler};
pub(super) use stranded::{StrandedEnd, decide_stranded};

/// The error text for work that this node cannot process (S2.9). It names both causes, because the cause may differ
/// from node to node.
pub(crate) const NOT_PROCESSED_HERE: &str = "work item could not be processed on this node (orchestration not registered \
                                  here, or execution history is unsupported)";

/// The recorded version of a start that named no version and was never resolved to one.
const UNKNOWN_VERSION: &str = "unknown";

/// A claimed instance with its history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimed<'a> {
    pub instance: &'a str,
    pub name: &'a str,
    pub execution_id: u64,
    pub messages: &'a [WorkItem],
    pub attempt_count: u32,
    pub history: &'a [Event],
    pub history_error: Option<&'a str>,
    /// Whether the instance has ended, by its stored status. Only set if the history cannot be decoded.
    pub ended: bool,
}

/// The orchestration handlers of this node.
pub(crate) trait Handlers {
    /// Finds the handler of this exact version, or the version that the version policy picks.
    fn find(&self, name: &str, version: Option<&str>) -> Option<(String, OrchestrationHandlerRef)>;
}

/// The capabilities and settings of this node that decide about a claim.
pub(crate) struct Policy<'a> {
    pub max_attempts: u32,
    pub supported: &'a [SemverRange],
    pub handlers: &'a dyn Handlers,
    pub node: &'a str,
    /// The nodes of the store. Only read for a claim that was attempted too often.
    pub joined: &'a [JoinedNode],
    /// Whether this node ends cancelled executions that it cannot replay.
    pub cancel_only_fallback: bool,
}

/// The next step for a claimed instance.
#[derive(Debug)]
pub(crate) enum Decision {
    Run(Run),
    /// Abandon the claim: a later attempt or another node may be able to process it.
    Abandon(Unprocessable),
    /// End the execution without running its code.
    End(Termination),
    /// Drop the messages, because the instance has ended.
    DropEnded,
    /// Drop the messages, because no such instance exists and none of the messages starts one.
    DropUnknown,
}

impl Decision {
    /// Whether this node can process the claim (S0.24).
    #[cfg(test)]
    pub(crate) fn is_processable(&self) -> bool {
        !matches!(self, Self::Abandon(_))
    }
}

/// A turn that can run.
pub(crate) struct Run {
    pub handler: OrchestrationHandlerRef,
    /// The start of an execution without history. `None` if the history is replayed.
    pub seed: Option<Seed>,
    pub name: String,
    pub version: String,
    /// The version stamp of the first event, if it is not a valid version.
    pub unreadable_pin: Option<String>,
    /// The duroxide version that started the execution, if it is later than this build.
    pub later_pin: Option<VersionTriple>,
    /// Whether this node could replay the execution. An execution started here is pinned to this build, which the
    /// node's own ranges may exclude (17.4).
    pub replayable: bool,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("seed", &self.seed)
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Why this node cannot process a claim now (S0.23).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unprocessable {
    /// The node has no handler of this name, or not of this version (16.8).
    UnregisteredOrchestration {
        name: String,
        /// The requested or recorded version.
        version: Option<String>,
    },
    /// The execution was started by a duroxide version that this node does not replay (17.4).
    IncompatibleVersion {
        pinned: VersionTriple,
        supported: String,
    },
    /// A later duroxide version started the execution, this node's range includes that version, and replay shows that
    /// the rules have changed (S3.44).
    OtherRules {
        pinned: VersionTriple,
        mismatch: String,
    },
    UndecodableHistory {
        error: String,
    },
    /// The execution continued as new, and the start of its successor has not arrived yet (8.6).
    WaitingForSuccessor,
}

/// An execution to end without running its code.
#[derive(Debug, Clone)]
pub(crate) struct Termination {
    pub target: EndTarget,
    pub ending: Ending,
    pub cause: Cause,
}

/// The execution to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndTarget {
    /// An execution without history.
    Unstarted(Seed),
    /// The claimed execution, with its history loaded.
    Stored,
    /// The claimed execution, whose history cannot be decoded.
    Unreadable,
}

/// Why the execution is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Attempted too often. `reason` is set if this node has no handler for it.
    Poison { reason: Option<String> },
    /// Attempted too often, because no node can replay it.
    UnsupportedVersion,
    /// No node that can run it has been available for too long.
    Stranded { missing: String },
    /// Cancelled, and this node has no handler for it (6.3).
    CancelledWithoutHandler,
    /// Cancelled, and this node cannot replay it.
    CancelledUnsupported,
}

/// Decides the next step for a claim.
pub(crate) fn decide(claim: Claimed<'_>, policy: &Policy<'_>) -> Decision {
    let exhausted = claim.attempt_count > policy.max_attempts;
    if let Some(error) = claim.history_error {
        return match (exhausted, claim.ended) {
            (false, _) => Decision::Abandon(Unprocessable::UndecodableHistory { error: error.to_owned() }),
            (true, true) => Decision::DropEnded,
            (true, false) => poison_unreadable(claim, policy, error),
        };
    }
    if let Some(pinned) = incompatible_pin(claim.history, policy.supported) {
        let supported = describe_ranges(policy.supported);
        if let Some(cancelled) = cancelled_without_replay(claim, policy) {
            return cancelled;
        }
        return match (exhausted, execution_state(claim.history)) {
            (false, _) => Decision::Abandon(Unprocessable::IncompatibleVersion { pinned, supported }),
            (true, ExecutionState::Ended) => Decision::DropEnded,
            (true, execution_state) => unsupported(claim, policy, execution_state, pinned, &supported),
        };
    }
    match execution_state(claim.history) {
        ExecutionState::Ended => Decision::DropEnded,
        execution_state if exhausted => poison(claim, policy, execution_state),
        ExecutionState::Continued => match successor_item(claim.messages) {
            Some(item) => decide_start(claim, policy, item, claim.execution_id + 1),
            None => Decision::Abandon(Unprocessable::WaitingForSuccessor),
        },
        ExecutionState::New => match start_item(claim.messages) {
            Some(item) => decide_start(claim, policy, item, claim.execution_id),
            None => Decision::DropUnknown,
        },
        ExecutionState::Running => decide_running(claim, policy),
    }
}

/// The state of an execution. The last stored event decides it, not the stored status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutionState {
    New,
    Running,
    Continued,
    Ended,
}

pub(crate) fn execution_state(history: &[Event]) -> ExecutionState {
    let Some(last) = history.last() else { return ExecutionState::New };
    if matches!(last.kind, EventKind::OrchestrationContinuedAsNew { .. }) {
        return ExecutionState::Continued;
    }
    match last.kind.role() {
        EventRole::End => ExecutionState::Ended,
        EventRole::Start
        | EventRole::CancelRequest
        | EventRole::Call(_)
        | EventRole::Completion(_)
        | EventRole::GivenUp { .. }
        | EventRole::Message
        | EventRole::DetachedStart
        | EventRole::CustomStatus(_)
        | EventRole::KeyValues(_) => ExecutionState::Running,
    }
}

/// Decides for an execution without history.
fn decide_start(claim: Claimed<'_>, policy: &Policy<'_>, item: &WorkItem, execution_id: u64) -> Decision {
    let Some((name, asked)) = wanted_handler(item) else { return Decision::DropUnknown };
    match policy.handlers.find(name, asked) {
        Some((version, handler)) => match Seed::from_item(item.clone(), execution_id, version.clone()) {
            Some(seed) => Decision::Run(Run {
                handler,
                seed: Some(seed),
                name: name.to_owned(),
                version,
                unreadable_pin: None,
                later_pin: None,
                replayable: replays(policy.supported, (&current_build_version()).into()),
            }),
            None => Decision::DropUnknown,
        },
        None => {
            let seed =
                Seed::from_item(item.clone(), execution_id, asked.unwrap_or(UNKNOWN_VERSION).to_owned());
            unregistered(claim, name, asked, seed.map(EndTarget::Unstarted))
        }
    }
}

/// Decides for an execution that has history.
fn decide_running(claim: Claimed<'_>, policy: &Policy<'_>) -> Decision {
    // A history without a start event names no handler. Any handler will do, because replay reports the error.
    let (name, version) =
        recorded_handler(claim.history).map_or((claim.name, None), |(name, version)| (name, Some(version)));
    match policy.handlers.find(name, version) {
        Some((found, handler)) => Decision::Run(Run {
            handler,
            seed: None,
            name: name.to_owned(),
            version: version.map_or(found, str::to_owned),
            unreadable_pin: unreadable_pin(claim.history),
            later_pin: later_pin(claim.history),
            replayable: true,
        }),
        None => unregistered(claim, name, version, Some(EndTarget::Stored)),
    }
}

/// Ends a cancelled execution, which needs no handler. Any other execution waits for a node that has the handler.
fn unregistered(
    claim: Claimed<'_>,
    name: &str,
    version: Option<&str>,
    target: Option<EndTarget>,
) -> Decision {
    // Code that asked for the request cleans up, on a node that has its handler.
    let history = if target == Some(EndTarget::Stored) { claim.history } else { &[] };
    match (cancels(history, cancellations(claim.messages)), target) {
        (Some(reason), Some(target)) => Decision::End(Termination {
            target,
            ending: Ending::Cancelled { reason: reason.to_owned() },
            cause: Cause::CancelledWithoutHandler,
        }),
        _ => Decision::Abandon(Unprocessable::UnregisteredOrchestration {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        }),
    }
}

/// Ends a cancelled execution that this node cannot replay, if the options allow it. Ending needs no replay.
fn cancelled_without_replay(claim: Claimed<'_>, policy: &Policy<'_>) -> Option<Decision> {
    let cancelled = policy.cancel_only_fallback && cancellation(claim.messages).is_some();
    cancelled.then(|| decide_stranded(claim, policy, &StrandedEnd::Cancelled)).flatten()
}
