//! [`VerifyReport`]: what a check of a store found.

use std::{collections::BTreeMap, fmt, process::ExitCode};

use super::Checked;
use crate::ReplayError;

/// Kinds of findings that are told apart, so that a report stays small whatever the store holds.
const FINDINGS_MAX: usize = 200;

/// What [`verify_open_instances`](super::verify_open_instances) found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    checked: u64,
    ended: u64,
    failed: u64,
    findings: BTreeMap<Key, FindingReport>,
    /// Failed instances of further kinds.
    others: u64,
}

/// Instances that differ in the same way are one finding: name, version, event and place in the code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    name: String,
    version: String,
    event_id: u64,
    place: String,
}

/// Instances of one name and version that cannot go on, for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindingReport {
    /// The orchestration's name.
    pub name: String,
    /// The handler version.
    pub version: String,
    /// How many instances.
    pub instances: u64,
    /// One of them.
    pub example: String,
    /// Why that one cannot go on.
    pub error: ReplayError,
}

impl VerifyReport {
    /// How many instances were checked, those that have ended meanwhile not counted.
    pub fn checked(&self) -> u64 {
        self.checked
    }

    /// How many instances have ended before they could be checked.
    pub fn ended_meanwhile(&self) -> u64 {
        self.ended
    }

    /// How many instances cannot go on with the new code.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// What was found, by name, version and event.
    pub fn findings(&self) -> impl Iterator<Item = &FindingReport> {
        self.findings.values()
    }

    /// Success if every instance can go on; 1 if not.
    pub fn exit_code(&self) -> ExitCode {
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
    }

    pub(super) fn add(&mut self, checked: Checked) {
        let Checked { instance, name, version, result } = checked;
        let Some(result) = result else {
            self.ended += 1;
            return;
        };
        self.checked += 1;
        if let Err(error) = result {
            self.failed += 1;
            self.add_finding(instance, name, version, error);
        }
    }

    fn add_finding(&mut self, instance: String, name: String, version: String, error: ReplayError) {
        let key = Key {
            name: name.clone(),
            version: version.clone(),
            event_id: event_of(&error),
            place: place_of(&error),
        };
        if let Some(known) = self.findings.get_mut(&key) {
            known.instances += 1;
        } else if self.findings.len() >= FINDINGS_MAX {
            self.others += 1;
        } else {
            let finding = FindingReport { name, version, instances: 1, example: instance, error };
            self.findings.insert(key, finding);
        }
    }
}

fn event_of(error: &ReplayError) -> u64 {
    match error {
        ReplayError::Diverges(divergence) => divergence.event_id,
        ReplayError::NoHandler { .. } | ReplayError::Unreadable(_) => 0,
    }
}

/// Where in the code, or what kind of finding.
fn place_of(error: &ReplayError) -> String {
    match error {
        ReplayError::Diverges(divergence) => divergence.location.map(ToString::to_string).unwrap_or_default(),
        ReplayError::NoHandler { .. } => "no handler".to_owned(),
        ReplayError::Unreadable(_) => "unreadable".to_owned(),
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checked, ended, failed, others, .. } = self;
        write!(f, "{checked} open instances checked, {failed} cannot go on")?;
        if *ended > 0 {
            write!(f, "; {ended} ended meanwhile")?;
        }
        for FindingReport { name, version, instances, example, error } in self.findings() {
            write!(f, "\n{name} {version}: {instances} instances, such as '{example}': {error}")?;
        }
        if *others > 0 {
            write!(f, "\nand {others} instances for other reasons")?;
        }
        Ok(())
    }
}
