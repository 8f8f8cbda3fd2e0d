//! The stored results of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    durability::Durability,
    machine::Machine,
    plan::{Line, Row, Side},
    sample::Sample,
    table::number,
    verdict::Verdict,
};

/// One run of `cargo xtask bench`.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) profile: String,
    pub(super) machine: Machine,
    pub(super) durability: Vec<Durability>,
    pub(super) seconds: u64,
    pub(super) rows: Vec<Measured>,
}

/// A row of the plan with everything that was measured for it.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) row: Row,
    pub(super) cells: Vec<Cell>,
}

impl Measured {
    pub(super) fn cell(&self, side: Side) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.side == side)
    }

    pub(super) fn sample(&self, line: &Line, side: Side) -> Option<Sample> {
        if line.only_ours && side.is_other_crate() {
            return None;
        }
        self.cell(side)?.sample(line.figure.name)
    }

    /// The other crate of this row.
    pub(super) fn other(&self) -> Option<Side> {
        self.cells.iter().map(|cell| cell.side).find(|side| side.is_other_crate())
    }

    /// How many times better ours is at FULL than the other crate.
    pub(super) fn ratio(&self, line: &Line) -> Option<f64> {
        let (ours, theirs) = (self.sample(line, Side::Full)?, self.sample(line, self.other()?)?);
        line.figure.ratio(ours.median, theirs.median)
    }

    /// Whether the target is reached; nothing if the line has none or the figures are missing.
    pub(super) fn verdict(&self, line: &Line) -> Option<Verdict> {
        let ours = self.sample(line, Side::Full).map(|sample| sample.median);
        line.target.as_ref()?.judge(ours, self.ratio(line))
    }

    /// The title of a line in the table and the chart.
    pub(super) fn title(&self, line: &Line) -> String {
        if line.label.is_empty() {
            self.row.title.clone()
        } else {
            format!("{}: {}", self.row.title, line.label)
        }
    }
}

/// The runs of one workload on one side.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) side: Side,
    pub(super) args: String,
    pub(super) runs: Vec<Result<Report, String>>,
}

impl Cell {
    /// The middle and extremes of a figure over all runs that have it.
    pub(super) fn sample(&self, figure: &str) -> Option<Sample> {
        Sample::of(self.reports().filter_map(|report| report.figures.get(figure).copied()))
    }

    pub(super) fn reports(&self) -> impl Iterator<Item = &Report> {
        self.runs.iter().flatten()
    }

    pub(super) fn instances(&self) -> u64 {
        self.reports().map(|report| report.instances).sum()
    }

    pub(super) fn failed(&self) -> u64 {
        self.reports().map(|report| report.failed).sum()
    }

    /// The errors, run by run.
    pub(super) fn problems(&self) -> impl Iterator<Item = &str> {
        let errors = self.runs.iter().filter_map(|run| run.as_ref().err().map(String::as_str));
        errors.chain(self.reports().flat_map(|report| report.problems.iter().map(String::as_str)))
    }
}

/// The JSON line of one run, written by `bench/workloads/report.rs`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) implementation: String,
    pub(super) version: String,
    pub(super) store: String,
    pub(super) journal_mode: Option<String>,
    pub(super) synchronous: String,
    pub(super) slots: Option<usize>,
    pub(super) command: String,
    pub(super) instances: u64,
    pub(super) failed: u64,
    pub(super) problems: Vec<String>,
    pub(super) figures: BTreeMap<String, f64>,
    #[serde(default, skip_serializing)]
    pub(super) error: Option<String>,
}

/// A run in a few words, for the progress lines.
pub(super) fn brief(run: &Result<Report, String>, lines: &[Line]) -> String {
    match run {
        Ok(report) => {
            let figures = lines.iter().filter_map(|line| {
                let value = report.figures.get(line.figure.name)?;
                Some(format!("{} {}", number(*value), line.figure.unit))
            });
            let figures: Vec<_> = figures.collect();
            format!("{} ({} of {} failed)", figures.join(", "), report.failed, report.instances)
        }
        Err(error) => format!("error: {error}"),
    }
}

#[cfg(test)]
pub(super) mod fixture {
    //! Results as a run could have had them.

    use super::{
        super::{
            plan::{Figure, SideRun},
            verdict::Target,
        },
        *,
    };

    fn report(figure: &str, value: f64, instances: u64, failed: u64) -> Result<Report, String> {
        Ok(Report {
            implementation: "ours".to_owned(),
            version: "0.5.0".to_owned(),
            store: "full".to_owned(),
            journal_mode: Some("wal".to_owned()),
            synchronous: "FULL".to_owned(),
            slots: None,
            command: String::new(),
            instances,
            failed,
            problems: Vec::new(),
            figures: BTreeMap::from([(figure.to_owned(), value)]),
            error: None,
        })
    }

    fn measured(name: &'static str, figure: Figure, cells: Vec<Cell>) -> Measured {
        let runs = cells.iter().map(|cell| SideRun { side: cell.side, args: cell.args.clone() }).collect();
        let line = Line { label: "", figure, target: Some(Target::Times(50.0)), only_ours: false };
        Measured {
            row: Row { name, title: name.to_owned(), sizes: "10", lines: vec![line], repeat: 1, runs },
            cells,
        }
    }

    fn cell(side: Side, args: &str, runs: Vec<Result<Report, String>>) -> Cell {
        Cell { side, args: args.to_owned(), runs }
    }

    /// A good row, one whose published side failed, and one with wrong results.
    pub(in super::super) fn results() -> Results {
        let rate = |value| report("instances_per_s", value, 10, 0);
        let hello = vec![
            cell(Side::Published, "hello --instances 200", [100.0, 120.0, 110.0].map(rate).into()),
            cell(Side::Full, "hello --instances 2000", [5_000.0, 5_500.0, 6_000.0].map(rate).into()),
        ];
        let restart = vec![
            cell(Side::Published, "restart --instances 200", vec![Err("database is locked".to_owned())]),
            cell(Side::Full, "restart --instances 2000", vec![report("until_done_s", 1.5, 10, 0)]),
        ];
        let timers = vec![cell(Side::Full, "timers", vec![report("last_ms", 2.0, 1_000, 3)])];
        Results {
            profile: "quick".to_owned(),
            machine: Machine {
                cores: 2,
                processor: "a processor".to_owned(),
                kernel: "a kernel".to_owned(),
                file_system: "ext4".to_owned(),
                rustc: "rustc 1.90".to_owned(),
                commit: "abc".to_owned(),
                load_before: "0.10".to_owned(),
            },
            durability: Vec::new(),
            seconds: 60,
            rows: vec![
                measured("hello", Figure::higher("instances_per_s", "instances/s"), hello),
                measured("restart", Figure::lower("until_done_s", "s"), restart),
                measured("timers", Figure::lower("last_ms", "ms"), timers),
            ],
        }
    }
}
