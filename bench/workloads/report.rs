//! The line of JSON that a run prints.

use std::{collections::BTreeMap, env};

use serde::Serialize;

use super::{outcome::Outcome, setting::Setting};
use crate::adapter;

/// Everything a run says about itself. `cargo xtask bench` reads it.
#[derive(Debug, Serialize)]
pub struct Report {
    implementation: &'static str,
    version: String,
    store: String,
    journal_mode: Option<String>,
    synchronous: &'static str,
    slots: Option<usize>,
    command: String,
    instances: u64,
    failed: u64,
    problems: Vec<String>,
    figures: BTreeMap<&'static str, f64>,
    error: Option<String>,
}

impl Report {
    pub fn new(setting: &Setting, outcome: Result<Outcome, String>) -> Self {
        let (outcome, error) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(error) => (Outcome::default(), Some(error)),
        };
        Self {
            implementation: adapter::IMPLEMENTATION,
            version: duroxide::current_build_version().to_string(),
            store: setting.store.clone(),
            journal_mode: outcome.journal_mode,
            synchronous: adapter::synchronous(&setting.store),
            slots: setting.slots,
            command: env::args().skip(1).collect::<Vec<_>>().join(" "),
            instances: outcome.instances,
            failed: outcome.failed,
            problems: outcome.problems,
            figures: outcome.figures,
            error,
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}
