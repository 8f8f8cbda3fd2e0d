//! Explanations in sentences.

mod time;

use std::{cell::Cell, fmt};

use duroxide_provider::{MissingCapability, SemverRange, short_node_name};

use super::{ActivityState, Explanation, Finding};

impl Explanation {
    /// A sentence for each finding, without a full stop, the most important first. Times of day are in UTC; the first one
    /// is marked.
    pub fn lines(&self) -> Vec<String> {
        let words = Words::at(self.now_ms);
        let mut lines: Vec<String> = self.findings.iter().map(|finding| words.sentence(finding)).collect();
        if self.more_calls > 0 {
            lines.push(format!("waits for {} more calls", self.more_calls));
        }
        lines
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({} {}", self.instance, self.name, self.version)?;
        if self.execution_id > 1 {
            write!(f, ", execution {}", self.execution_id)?;
        }
        write!(f, ") is {}", self.status)?;
        self.lines().iter().try_for_each(|line| write!(f, "\n- {line}"))
    }
}

/// One sentence, with times of day in UTC. [`Explanation::lines`] also writes how long ago that was.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Words { now_ms: None, said_utc: Cell::new(false) }.sentence(self))
    }
}

/// How sentences of one text are written.
struct Words {
    /// The time of reading, from which ages are computed. `None` if it is not known.
    now_ms: Option<u64>,
    /// Whether a time of this text was already marked as UTC.
    said_utc: Cell<bool>,
}

impl Words {
    fn at(now_ms: u64) -> Self {
        Self { now_ms: Some(now_ms), said_utc: Cell::new(false) }
    }

    fn sentence(&self, finding: &Finding) -> String {
        match finding {
            Finding::Completed { at_ms } => format!("completed {}", self.past("at", *at_ms)),
            Finding::Failed { error, at_ms } => format!("failed {}: {error}", self.past("at", *at_ms)),
            Finding::Poisoned { what, at_ms, .. } => {
                format!("failed {}: {}", self.past("at", *at_ms), with_short_names(what))
            }
            Finding::Cancelled { reason, at_ms } => {
                format!("was cancelled {}: {reason}", self.past("at", *at_ms))
            }
            Finding::StartQueued { since_ms } => {
                format!("its start is queued {}, and no node has begun it", self.since(*since_ms))
            }
            Finding::CancelRequested { since_ms } => {
                format!("was asked to cancel {} and has not ended", self.past("at", *since_ms))
            }
            Finding::TurnRunning { node, lease_ends_ms, attempt } => format!(
                "a turn of it runs{}, attempt {attempt}, lease ends {}",
                on_node(node.as_deref()),
                self.future(*lease_ends_ms)
            ),
            Finding::Ready { since_ms, attempts } => {
                format!("waits for a free slot of a node {}{}", self.since(*since_ms), fetched(*attempts))
            }
            Finding::Hidden { until_ms, lacking_nodes } => {
                format!("its messages are {}", self.hidden(*until_ms, lacking_nodes))
            }
            Finding::NoNode { missing } => missing_words(missing),
            Finding::Event { name, since_ms, last_raised } => {
                format!("waits for event `{name}` {}{}", self.since(*since_ms), raised(name, last_raised))
            }
            Finding::Queue { name, since_ms, last_enqueued } => format!(
                "waits for a message of queue `{name}` {}{}",
                self.since(*since_ms),
                enqueued(last_enqueued)
            ),
            Finding::Timer { due_ms, .. } => self.due(*due_ms),
            Finding::FailedBefore { name, error, at_ms } => {
                format!("before that, activity `{name}` failed {}: {error}", self.past("at", *at_ms))
            }
            Finding::Activity { name, attempt, max_attempts, since_ms, state, .. } => {
                self.activity(name, *attempt, *max_attempts, *since_ms, state)
            }
            Finding::Child { instance, name, since_ms, explanation } => format!(
                "waits for child `{instance}` ({name}) {}{}",
                self.since(*since_ms),
                self.child(explanation.as_deref())
            ),
            Finding::AwaitsCancellation { since_ms } => {
                format!("waits to be cancelled {}", self.since(*since_ms))
            }
            Finding::DeadLetter { id, reason } => {
                format!("dead letter {id} holds a message or an activity of it: {reason}")
            }
            Finding::Unreadable { error } => format!("its history cannot be read: {error}"),
            Finding::Nothing => "waits for no call, and no message is queued for it".to_owned(),
        }
    }

    fn activity(
        &self,
        name: &str,
        attempt: u32,
        max_attempts: Option<u32>,
        since_ms: u64,
        state: &ActivityState,
    ) -> String {
        // Lazy, because only the first written time of a text names its zone.
        let since = || self.since(since_ms);
        match state {
            ActivityState::Running { node, lease_ends_ms } => {
                let of = max_attempts.map(|max| format!(" of {max}")).unwrap_or_default();
                let lease = self.future(*lease_ends_ms);
                format!(
                    "activity `{name}` runs{}, attempt {attempt}{of}, lease ends {lease}, scheduled {}",
                    on_node(node.as_deref()),
                    self.past("at", since_ms)
                )
            }
            ActivityState::Waiting => {
                format!("activity `{name}` waits for a free worker slot {}{}", since(), fetched(attempt))
            }
            ActivityState::SessionHeld { session, owner, lease_ends_ms } => format!(
                "activity `{name}` waits {} for session `{session}`, which worker {} holds, lease ends {}{}",
                since(),
                short_node_name(owner),
                self.future(*lease_ends_ms),
                fetched(attempt)
            ),
            ActivityState::Hidden { until_ms, lacking_nodes } => {
                format!("activity `{name}` is {}", self.hidden(*until_ms, lacking_nodes))
            }
            ActivityState::NoNode { missing } => {
                format!("activity `{name}` waits {}: {}", since(), missing_words(missing))
            }
            ActivityState::StopRequested => {
                format!(
                    "activity `{name}` was asked to stop and has not ended, scheduled {}",
                    self.past("at", since_ms)
                )
            }
            ActivityState::NotQueued => format!(
                "waits for activity `{name}` {}, which is not queued: its result is on the way, or it is a dead \
                 letter",
                since()
            ),
            ActivityState::Unknown => format!("waits for activity `{name}` {}", since()),
        }
    }

    fn child(&self, explanation: Option<&Explanation>) -> String {
        let first = explanation.and_then(|child| child.findings.first());
        first.map(|finding| format!("; the child: {}", self.sentence(finding))).unwrap_or_default()
    }

    fn hidden(&self, until_ms: u64, lacking_nodes: &[String]) -> String {
        let because = match lacking_nodes {
            [] => ": a node gave it back".to_owned(),
            nodes => {
                let nodes: Vec<&str> = nodes.iter().map(|node| short_node_name(node)).collect();
                format!(", because no handler is on {}", nodes.join(", "))
            }
        };
        format!("hidden until {}{because}", self.time(until_ms))
    }

    // ---- times -------------------------------------------------------------------------------------------------

    fn since(&self, ms: u64) -> String {
        self.past("since", ms)
    }

    /// `since 14:02:11 UTC (3 h ago)`
    fn past(&self, word: &str, ms: u64) -> String {
        let ago = self.now_ms.map(|now| format!(" ({} ago)", time::span(now.saturating_sub(ms))));
        format!("{word} {}{}", self.time(ms), ago.unwrap_or_default())
    }

    /// `in 12 s`, or `at 14:02:11 UTC` if it is not known how late it is.
    fn future(&self, ms: u64) -> String {
        match self.now_ms {
            Some(now) => format!("in {}", time::span(ms.saturating_sub(now))),
            None => format!("at {}", self.time(ms)),
        }
    }

    fn due(&self, ms: u64) -> String {
        match self.now_ms {
            Some(now) if ms <= now => format!("timer was due {}", self.past("at", ms)),
            Some(_) => format!("timer due {}, at {}", self.future(ms), self.time(ms)),
            None => format!("timer due {}", self.future(ms)),
        }
    }

    /// The time of day; with the date if it is not that of the reading.
    fn time(&self, ms: u64) -> String {
        let zone = if self.said_utc.replace(true) { "" } else { " UTC" };
        format!("{}{zone}", time::of_day(ms, self.now_ms))
    }
}

fn on_node(node: Option<&str>) -> String {
    node.map(|node| format!(" on node {}", short_node_name(node))).unwrap_or_default()
}

/// A recorded text, which names nodes in full.
fn with_short_names(text: &str) -> String {
    let is_end = |c: char| c == ' ' || c == ',';
    let short = |word: &str| {
        let name = word.trim_end_matches(is_end);
        format!("{}{}", short_node_name(name), word.strip_prefix(name).unwrap_or_default())
    };
    text.split_inclusive(is_end).map(short).collect()
}

fn fetched(attempts: u32) -> String {
    match attempts {
        0 => String::new(),
        1 => ", fetched once before".to_owned(),
        times => format!(", fetched {times} times before"),
    }
}

fn raised(awaited: &str, last: &Option<String>) -> String {
    match last {
        None => String::new(),
        Some(last) if last == awaited => "; one was raised before it was awaited, and is lost".to_owned(),
        Some(last) => format!("; the last raised event was `{last}`"),
    }
}

fn enqueued(last: &Option<String>) -> String {
    last.as_ref().map(|last| format!("; messages wait in queue `{last}`")).unwrap_or_default()
}

fn missing_words(missing: &MissingCapability) -> String {
    match missing {
        MissingCapability::Replay { supported, .. } if supported.is_empty() => {
            "no live node runs orchestrations".to_owned()
        }
        MissingCapability::Replay { pinned, supported } => {
            let pinned = pinned.map(|pinned| format!(" {pinned}")).unwrap_or_default();
            let supported: Vec<String> = supported.iter().map(SemverRange::to_string).collect();
            format!("no live node replays version{pinned}; they replay {}", supported.join(" or "))
        }
        MissingCapability::Orchestration { name, version } => {
            let version = version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
            format!("no live node has handler `{name}`{version}")
        }
        MissingCapability::Activity { name } => format!("no live node has a handler for activity `{name}`"),
        MissingCapability::Tag { tag: Some(tag) } => {
            format!("no live node takes activities with tag `{tag}`")
        }
        MissingCapability::Tag { tag: None } => "no live node runs activities without a tag".to_owned(),
    }
}
