//! The outcome of a workload: figures, and whether every result was right.

use std::collections::BTreeMap;

/// How many problems are reported in full; the others are only counted.
const PROBLEMS_SHOWN_MAX: usize = 5;

/// The figures of a workload, and its problems.
#[derive(Debug, Default)]
pub struct Outcome {
    pub instances: u64,
    pub failed: u64,
    pub problems: Vec<String>,
    pub figures: BTreeMap<&'static str, f64>,
    pub journal_mode: Option<String>,
}

impl Outcome {
    /// An instance ended as it should, or with this problem.
    pub fn count(&mut self, result: Result<(), String>) {
        self.instances += 1;
        if let Err(problem) = result {
            self.failed += 1;
            if self.problems.len() < PROBLEMS_SHOWN_MAX {
                self.problems.push(problem);
            }
        }
    }

    /// Adds a figure, whose name ends with its unit. A figure that is no number, because nothing was measured, is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        if value.is_finite() {
            self.figures.insert(name, value);
        }
        self
    }

    /// Instances that ended as they should.
    pub fn correct(&self) -> u64 {
        self.instances - self.failed
    }

    /// A figure that was added before.
    pub fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(f64::NAN)
    }
}
