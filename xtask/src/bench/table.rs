//! The results as Markdown.

use std::fmt::Write;

use super::{
    plan::{Line, Side},
    results::{Cell, Measured, Results},
    sample::Sample,
};

/// The whole report: the table, the errors, and the conditions of the measurement.
pub(super) fn render(results: &Results) -> String {
    let mut text = String::new();
    text += "| workload | size | unit | other crate | ours FULL | ratio | target | | ours NORMAL | ours memory |\n";
    text += "|---|---|---|--:|--:|--:|--:|---|--:|--:|\n";
    for measured in &results.rows {
        for line in &measured.row.lines {
            text += &row(measured, line);
        }
    }
    text += "\nMedians of repeated runs, with the lowest and the highest. The other crate is the published one as it comes, or \
             durare where the row names it; the ratio says how many times better ours is at FULL. Two sizes are ours and, smaller because it is slow, that of the \
             published crate; rates and times compare per instance, and it gets slower with more. Rows \
             that name no slots run at default options.\n";
    text += &problems(results);
    text += &conditions(results);
    text
}

fn row(measured: &Measured, line: &Line) -> String {
    let cells = [
        measured.title(line),
        measured.row.sizes.to_owned(),
        line.figure.unit.to_owned(),
        measured.other().map_or(String::new(), |other| cell(measured, line, other)),
        cell(measured, line, Side::Full),
        measured.ratio(line).map_or(String::new(), |ratio| format!("{} ×", number(ratio))),
        line.target.map_or(String::new(), |target| target.to_string()),
        measured.verdict(line).map_or(String::new(), |verdict| verdict.to_string()),
        cell(measured, line, Side::Normal),
        cell(measured, line, Side::Memory),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn cell(measured: &Measured, line: &Line, side: Side) -> String {
    let Some(cell) = measured.cell(side) else { return String::new() };
    if line.only_ours && side.is_other_crate() {
        return String::new();
    }
    let value = measured.sample(line, side).map_or("error".to_owned(), |sample| spread(&sample));
    match cell.failed() {
        0 => value,
        failed => format!("{value}, {failed} of {} failed", count(cell.instances())),
    }
}

fn spread(sample: &Sample) -> String {
    if sample.min == sample.max {
        return number(sample.median);
    }
    format!("{} ({}–{})", number(sample.median), number(sample.min), number(sample.max))
}

/// The first failure in each cell, with the command that repeats it; the table has the numbers.
fn problems(results: &Results) -> String {
    let mut text = String::new();
    for measured in &results.rows {
        for cell in &measured.cells {
            for problem in cell.problems().take(1) {
                let _ = writeln!(text, "* {}, `{}`: {problem}", cell.side.title(), cell.args);
            }
        }
    }
    if text.is_empty() {
        return format!("\nNo instance failed and every output was right, {}.\n", checked(results));
    }
    format!("\nWhat went wrong ({}):\n\n{text}", checked(results))
}

fn checked(results: &Results) -> String {
    let instances: u64 = results.rows.iter().flat_map(|row| &row.cells).map(Cell::instances).sum();
    format!("{} instances checked", count(instances))
}

fn conditions(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "\nMeasured in {} s at commit {} with {} on {} ({} cores, {}, data on {}, load before: {}). Versions: {}.\n\nDurability:\n\n",
        results.seconds,
        machine.commit,
        machine.rustc,
        machine.processor,
        machine.cores,
        machine.kernel,
        machine.file_system,
        machine.load_before,
        versions(results),
    );
    for durability in &results.durability {
        let _ = writeln!(text, "* {durability}");
    }
    text += "\nCommands, of `bench-published`, `bench-durare` and `bench-ours` in `bench/target/release`; ours also with `--store normal` and \
             `--store memory`:\n\n";
    for measured in &results.rows {
        let _ = writeln!(text, "* {}", commands(measured));
    }
    text
}

fn commands(measured: &Measured) -> String {
    let command = |side| measured.cell(side).map(|cell| format!("{} `{}`", side.title(), cell.args));
    let sides = measured.other().into_iter().chain([Side::Full]);
    let commands: Vec<String> = sides.filter_map(command).collect();
    format!("{}: {}", measured.row.title, commands.join(", "))
}

fn versions(results: &Results) -> String {
    let mut versions: Vec<String> = results
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .flat_map(Cell::reports)
        .map(|report| format!("{} {}", report.implementation, report.version))
        .collect();
    versions.sort();
    versions.dedup();
    versions.join(", ")
}

/// A figure with about three significant digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => count(value.round() as u64),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.4}"),
    }
}

/// A whole number with separated thousands.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::results::fixture, *};

    #[test]
    fn figures_show_three_digits() {
        let shown: Vec<_> =
            [13_742.4, 1_000_000.0, 110.6, 18.04, 1.234, 0.56, 0.0412, 0.0].map(number).into();
        assert_eq!(shown, ["13,742", "1,000,000", "111", "18.0", "1.23", "0.56", "0.0412", "0"]);
    }

    #[test]
    fn a_row_shows_medians_spread_ratio_and_verdict() {
        let text = render(&fixture::results());
        let line = "| hello | 10 | instances/s | 110 (100–120) | 5,500 (5,000–6,000) | 50.0 × | ≥ 50.0 × | met | | |";
        assert!(text.replace("|  |  |", "| | |").contains(line), "{text}");
    }

    #[test]
    fn a_failed_workload_is_a_row_with_its_error() {
        let text = render(&fixture::results());
        assert!(text.contains("| restart | 10 | s | error | 1.50 |"), "{text}");
        assert!(text.contains("* published, `restart --instances 200`: database is locked"), "{text}");
    }

    #[test]
    fn failed_instances_are_shown_with_the_figure() {
        let text = render(&fixture::results());
        assert!(text.contains("2.00, 3 of 1,000 failed"), "{text}");
    }
}
