//! The execution of a turn: cached, or still to be built.

use duroxide_core::{
    Event, TraceContext, WorkItem,
    engine::{Execution, Setup, Turn},
};

use duroxide_provider::VersionTriple;

use super::{
    round::Notice,
    steps::{RunningSteps, run_with_steps},
};
use crate::{
    cache::{CachedExecution, HistoryPosition},
    dispatch::decide::{Run, is_seed_only},
    env::Env,
    observability::TurnOf,
};

/// A turn that is about to run.
pub(super) struct NextTurn {
    pub source: Source,
    /// Whether this is the first turn of the execution.
    pub first_turn: bool,
    /// Messages to parents whose child starts are not accepted.
    pub collisions: Vec<Notice>,
}

/// The execution of a turn.
pub(super) enum Source {
    Live(Box<CachedExecution>),
    Cold(Box<Cold>),
}

/// What an execution is built from: its start, or its history.
pub(super) struct Cold {
    pub run: Run,
    pub setup: Setup,
    pub execution_id: u64,
    pub history: Vec<Event>,
    pub position: HistoryPosition,
    pub turns: u64,
    pub trace: Option<TraceContext>,
}

impl Source {
    /// The version stamp of the start event, if it is not a valid version.
    pub(super) fn unreadable_pin(&self) -> Option<&str> {
        match self {
            Self::Live(live) => live.unreadable_pin.as_deref(),
            Self::Cold(cold) => cold.run.unreadable_pin.as_deref(),
        }
    }

    /// The version that started the execution, if it is to be replayed and the version is later than this build.
    pub(super) fn later_pin(&self) -> Option<VersionTriple> {
        match self {
            Self::Live(_) => None,
            Self::Cold(cold) => cold.run.later_pin,
        }
    }

    pub(super) fn turn_of<'a>(&'a self, instance_id: &'a str) -> TurnOf<'a> {
        let (execution_id, name, version, turns, replays, trace) = match self {
            Self::Live(live) => {
                (live.execution_id, &live.name, &live.version, live.turns, false, &live.trace)
            }
            Self::Cold(cold) => {
                let Run { name, version, .. } = &cold.run;
                (cold.execution_id, name, version, cold.turns, cold.replays(), &cold.trace)
            }
        };
        TurnOf {
            instance_id,
            execution_id,
            orchestration_name: name,
            orchestration_version: version,
            turn: turns + 1,
            replays,
            trace: trace.as_ref(),
        }
    }

    /// Where the execution comes from, for metrics.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Live(_) => "cache",
            Self::Cold(cold) if cold.replays() => "replay",
            Self::Cold(_) => "new",
        }
    }

    /// Runs user code, so it must be called on a turn thread.
    pub(super) fn run(self, messages: Vec<WorkItem>, env: &dyn Env) -> (Box<CachedExecution>, Turn) {
        let mut live = match self {
            Self::Live(live) => live,
            Self::Cold(cold) => Box::new(cold.build()),
        };
        let turn = run_with_steps(&mut live, messages, env);
        (live, turn)
    }
}

impl Cold {
    /// Whether the code first repeats what is recorded.
    fn replays(&self) -> bool {
        self.run.seed.is_none() && !is_seed_only(&self.history)
    }

    fn build(self) -> CachedExecution {
        let Run { seed, name, version, unreadable_pin, replayable, .. } = self.run;
        let execution = match seed {
            Some(seed) => Execution::start(seed, self.setup),
            None => Execution::replay(self.history, self.setup),
        };
        CachedExecution {
            execution,
            execution_id: self.execution_id,
            name,
            version,
            turns: self.turns,
            unreadable_pin,
            replayable,
            trace: self.trace,
            position: self.position,
            steps: RunningSteps::default(),
        }
    }
}
