//! The figures as Markdown.

use std::fmt::Write;

use super::cases::{Beside, CORES_BUSY, Case, Line, Side};
use crate::bench::{machine::Machine, results::Report, sample::Sample, table::number};

/// A case with everything that was measured for it.
pub(super) struct Measured<'a> {
    pub(super) case: &'a Case,
    runs: Vec<(Side, Result<Report, String>)>,
}

impl<'a> Measured<'a> {
    pub(super) fn of(case: &'a Case) -> Self {
        Self { case, runs: Vec::new() }
    }

    pub(super) fn add(&mut self, side: Side, run: Result<Report, String>) {
        self.runs.push((side, run));
    }

    fn runs_of(&self, side: Side) -> impl Iterator<Item = &Result<Report, String>> {
        self.runs.iter().filter(move |(of, _)| *of == side).map(|(_, run)| run)
    }

    fn sample(&self, side: Side, line: &Line) -> Option<Sample> {
        let reports = self.runs_of(side).flatten();
        Sample::of(reports.filter_map(|report| report.figures.get(line.figure.name).copied()))
    }

    /// The share of all cores that our runs used, in percent.
    fn cores_busy(&self) -> Option<f64> {
        let reports = self.runs_of(Side::Ours).flatten();
        let busy = reports.filter_map(|report| report.figures.get(CORES_BUSY.name).copied());
        Sample::of(busy).map(|sample| sample.median)
    }

    fn median(&self, side: Side, line: &Line) -> Option<f64> {
        self.sample(side, line).map(|sample| sample.median)
    }

    /// The middle value, the extremes, and how many instances failed.
    fn cell(&self, side: Side, line: &Line) -> String {
        if self.runs_of(side).next().is_none() {
            return String::new();
        }
        let Some(sample) = self.sample(side, line) else {
            let has_failed = self.runs_of(side).any(Result::is_err);
            return if has_failed { "error".to_owned() } else { String::new() };
        };
        let failed: u64 = self.runs_of(side).flatten().map(|report| report.failed).sum();
        let mut text = number(sample.median);
        if sample.min < sample.max {
            let _ = write!(text, " ({}–{})", number(sample.min), number(sample.max));
        }
        if failed > 0 {
            let _ = write!(text, ", {failed} failed");
        }
        text
    }

    /// Each target with its verdict.
    fn targets(&self, line: &Line, before: Option<&Self>) -> String {
        let before = before.and_then(|before| before.median(Side::Ours, before.case.lines.first()?));
        let beside = Beside { before, cores_busy: self.cores_busy() };
        let verdict = |target: &super::cases::Target| {
            let ours = self.median(Side::Ours, line)?;
            target.judge(line.figure, ours, |side| self.median(side, line), beside)
        };
        let judged = line.targets.iter().map(|target| match verdict(target) {
            Some(verdict) => format!("{target}: {verdict}"),
            None => target.to_string(),
        });
        judged.collect::<Vec<_>>().join("; ")
    }
}

/// A run in a few words, for the progress lines.
pub(super) fn brief(run: &Result<Report, String>, case: &Case) -> String {
    match run {
        Ok(report) => {
            let figures = case.lines.iter().filter_map(|line| {
                let value = report.figures.get(line.figure.name)?;
                Some(format!("{} {}", number(*value), line.figure.unit))
            });
            let figures: Vec<_> = figures.collect();
            format!("{} ({} of {} failed)", figures.join(", "), report.failed, report.instances)
        }
        Err(error) => format!("error: {error}"),
    }
}

/// The table, the errors, and the machine.
pub(super) fn render(measured: &[Measured<'_>], machine: &Machine) -> String {
    let mut text =
        "| workload | unit | duroxide-pg | durare | ours | targets |\n|---|---|--:|--:|--:|---|\n".to_owned();
    for (index, row) in measured.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| measured.get(index));
        for line in &row.case.lines {
            let title = match line.label {
                "" => row.case.title.to_owned(),
                label => format!("{}: {label}", row.case.title),
            };
            let [pg, durare, ours] = Side::ALL.map(|side| row.cell(side, line));
            let targets = row.targets(line, before);
            let _ =
                writeln!(text, "| {title} | {} | {pg} | {durare} | {ours} | {targets} |", line.figure.unit);
        }
    }
    text += "\nMedians of repeated runs, with the lowest and the highest; the rows and the implementations take turns on one server, with \
             `fsync` and `synchronous_commit` on. `durare` runs a workflow and its step in the process that starts them, without \
             a queue in between.\n\n";
    for (side, error) in
        measured.iter().flat_map(|row| &row.runs).filter_map(|(side, run)| Some((side, run.as_ref().err()?)))
    {
        let _ = writeln!(text, "* {}: {error}", side.package());
    }
    let _ = writeln!(
        text,
        "Measured at commit {} with {} on {} ({} cores, {}, load before: {}).",
        machine.commit, machine.rustc, machine.processor, machine.cores, machine.kernel, machine.load_before
    );
    text
}
