//! [`VerifyReport`]: the result of a check of a store.

use std::{collections::BTreeMap, fmt, process::ExitCode};

use super::Checked;
use crate::ReplayError;

/// Maximum number of findings, which bounds the size of a report.
const FINDINGS_MAX: usize = 200;

/// The result of [`verify_open_instances`](super::verify_open_instances).
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    checked: u64,
    ended: u64,
    failed: u64,
    findings: BTreeMap<Key, FindingReport>,
    /// Failed instances that belong to none of the findings.
    others: u64,
}

/// Identifies a finding: instances that differ at the same event and place in the code are one finding.
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
    /// The number of instances.
    pub instances: u64,
    /// The id of one of the instances.
    pub example: String,
    /// Why the example cannot go on.
    pub error: ReplayError,
}

impl VerifyReport {
    /// The number of checked instances, not counting those that ended meanwhile.
    pub fn checked(&self) -> u64 {
        self.checked
    }

    /// The number of instances that ended before they could be checked.
    pub fn ended_meanwhile(&self) -> u64 {
        self.ended
    }

    /// The number of instances that cannot go on with the new code.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// The findings, ordered by name, version and event.
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

/// The place in the code at which the replay diverged, or the kind of error.
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
