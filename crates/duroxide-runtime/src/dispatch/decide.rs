//! What is to be done with a claimed instance, decided before any code runs (semantics 2.2).
//!
//! The checks run in a fixed order and the first that applies decides. They are pure: the claim and its history
//! come in, and what to do goes out as a value (S0.21). Only the dispatcher talks to the provider.

mod batch;
mod end_target;
mod exhausted;
mod history;
mod lacking_nodes;
mod pin;
mod stranded;
#[cfg(test)]
mod tests;

use std::fmt;

use duroxide_core::{
    Event, EventKind, OrchestrationHandlerRef, WorkItem, current_build_version,
    engine::{Ending, Seed, recorded_cancellation},
};
use duroxide_provider::{JoinedNode, SemverRange, VersionTriple};

use batch::cancellation;
use end_target::end_target;
use exhausted::{poison, poison_unreadable, unsupported};
use pin::{later_pin, replays, unreadable_pin};

pub(super) use batch::{is_wake_up, start_item, successor_item, wanted_handler};
pub(super) use history::{is_seed_only, recorded_handler, recorded_parent};
pub(super) use lacking_nodes::{joined_nodes, lacking};
pub(crate) use pin::describe_ranges;
pub(super) use pin::incompatible_pin;
pub(super) use stranded::{StrandedEnd, decide_stranded};

/// The text for work that this node cannot process (S2.9). It names both causes, because which one it is may
/// differ from node to node.
pub(crate) const NOT_PROCESSED_HERE: &str = "work item could not be processed on this node (orchestration not registered \
                                  here, or execution history is unsupported)";

/// The version of a start that asked for none and was never resolved.
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
    /// Known from the stored status where the history cannot be decoded.
    pub ended: bool,
}

/// Which handlers this node has.
pub(crate) trait Handlers {
    /// The handler of an orchestration: this exact version, or the one that the version policy picks.
    fn find(&self, name: &str, version: Option<&str>) -> Option<(String, OrchestrationHandlerRef)>;
}

/// What this node takes on.
pub(crate) struct Policy<'a> {
    pub max_attempts: u32,
    pub supported: &'a [SemverRange],
    pub handlers: &'a dyn Handlers,
    /// The id of this node.
    pub node: &'a str,
    /// The nodes of the store. Only asked for when a claim was attempted too often.
    pub joined: &'a [JoinedNode],
    /// Whether a cancelled execution ends here that cannot be replayed here.
    pub cancel_only_fallback: bool,
}

/// What to do with a claimed instance.
#[derive(Debug)]
pub(crate) enum Decision {
    /// Run a turn.
    Run(Run),
    /// Give the claim back; a later attempt, or another node, may do better.
    Abandon(Unprocessable),
    /// End the execution without running its code.
    End(Termination),
    /// The instance has ended: drop the messages.
    DropEnded,
    /// The messages belong to no instance and nothing ever started one.
    DropUnknown,
}

impl Decision {
    /// Whether the claim can be processed here (S0.24).
    #[cfg(test)]
    pub(crate) fn is_processable(&self) -> bool {
        !matches!(self, Self::Abandon(_))
    }
}

/// A turn that can run.
pub(crate) struct Run {
    pub handler: OrchestrationHandlerRef,
    /// The start of an execution that has no history yet; otherwise the history is replayed.
    pub seed: Option<Seed>,
    pub name: String,
    pub version: String,
    /// The stamp of the first event if it is no version.
    pub unreadable_pin: Option<String>,
    /// The version that started it, if that is later than this build.
    pub later_pin: Option<VersionTriple>,
    /// Whether this node could also replay it. One that it starts is pinned to its build, which its own ranges may
    /// leave out (17.4).
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

/// Why a claim cannot be processed here and now (S0.23).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unprocessable {
    /// No handler of this name, or not of this version (16.8).
    UnregisteredOrchestration {
        name: String,
        /// The version asked for or recorded.
        version: Option<String>,
    },
    /// The execution was started by a duroxide version that this node does not replay (17.4).
    IncompatibleVersion { pinned: VersionTriple, supported: String },
    /// A later duroxide version started the execution, this node's range includes that version, and replay shows that it
    /// went by other rules (S3.44).
    OtherRules { pinned: VersionTriple, mismatch: String },
    /// The stored history cannot be decoded.
    UndecodableHistory { error: String },
    /// The execution continued as new and its successor's start has not come yet (8.6).
    WaitingForSuccessor,
}

/// An execution that ends without running its code.
#[derive(Debug, Clone)]
pub(crate) struct Termination {
    pub target: EndTarget,
    pub ending: Ending,
    pub cause: Cause,
}

/// Which execution is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndTarget {
    /// One that has no history yet.
    Unstarted(Seed),
    /// The claimed one, whose history is at hand.
    Stored,
    /// The claimed one, whose history cannot be decoded.
    Unreadable,
}

/// Why it is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It was attempted too often. `reason` is given if this node has no handler for it.
    Poison { reason: Option<String> },
    /// It was attempted too often because no node can replay it.
    UnsupportedVersion,
    /// Nobody has come for too long who could run it.
    Stranded { missing: String },
    /// It was cancelled, and this node has no handler for it (6.3).
    CancelledWithoutHandler,
    /// It was cancelled, and cannot be replayed here.
    CancelledUnsupported,
}

/// Decides what to do with a claim.
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
            Some(item) => begin(claim, policy, item, claim.execution_id + 1),
            None => Decision::Abandon(Unprocessable::WaitingForSuccessor),
        },
        ExecutionState::New => match start_item(claim.messages) {
            Some(item) => begin(claim, policy, item, claim.execution_id),
            None => Decision::DropUnknown,
        },
        ExecutionState::Running => resume(claim, policy),
    }
}

/// How an execution stands. The last stored event says it; the stored status is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutionState {
    New,
    Running,
    Continued,
    Ended,
}

pub(crate) fn execution_state(history: &[Event]) -> ExecutionState {
    match history.last().map(|event| &event.kind) {
        None => ExecutionState::New,
        Some(EventKind::OrchestrationContinuedAsNew { .. }) => ExecutionState::Continued,
        Some(EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. }) => {
            ExecutionState::Ended
        }
        Some(_) => ExecutionState::Running,
    }
}

/// Begins an execution that has no history yet.
fn begin(claim: Claimed<'_>, policy: &Policy<'_>, item: &WorkItem, execution_id: u64) -> Decision {
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

/// Goes on with an execution that has history.
fn resume(claim: Claimed<'_>, policy: &Policy<'_>) -> Decision {
    // A history that does not begin with its start names no handler. Any will do, because replay reports it.
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

/// A cancelled execution needs no handler to end; any other waits for a node that has it.
fn unregistered(
    claim: Claimed<'_>,
    name: &str,
    version: Option<&str>,
    target: Option<EndTarget>,
) -> Decision {
    let recorded =
        (target == Some(EndTarget::Stored)).then(|| recorded_cancellation(claim.history)).flatten();
    match (recorded.or_else(|| cancellation(claim.messages)), target) {
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

/// Ends a cancelled execution that cannot be replayed here, if that is allowed: ending needs no replay.
fn cancelled_without_replay(claim: Claimed<'_>, policy: &Policy<'_>) -> Option<Decision> {
    let cancelled = policy.cancel_only_fallback && cancellation(claim.messages).is_some();
    cancelled.then(|| decide_stranded(claim, policy, &StrandedEnd::Cancelled)).flatten()
}
