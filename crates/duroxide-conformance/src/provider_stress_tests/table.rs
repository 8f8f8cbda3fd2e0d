//! Prints the results of several stress tests side by side.

use std::time::Duration;

use super::{StressTestReport, StressTestResult};

/// Prints results side by side: provider, configuration, result.
pub fn print_comparison_table(results: &[(String, String, StressTestResult)]) {
    println!("{}", comparison_table(results));
}

fn comparison_table(results: &[(String, String, StressTestResult)]) -> String {
    let mut lines = vec![format!(
        "{:<20} {:<20} {:>9} {:>9} {:>7} {:>9} {:>10} {:>10} {:>12}",
        "provider",
        "config",
        "launched",
        "completed",
        "failed",
        "success %",
        "orch/s",
        "activity/s",
        "latency ms"
    )];
    lines.extend(results.iter().map(|(provider, config, result)| {
        format!(
            "{provider:<20} {config:<20} {:>9} {:>9} {:>7} {:>9.2} {:>10.2} {:>10.2} {:>12.2}",
            result.launched,
            result.completed,
            result.failed,
            result.success_rate(),
            result.orch_throughput,
            result.activity_throughput,
            result.avg_latency_ms,
        )
    }));
    lines.join("\n")
}

/// Prints the latency percentiles of several runs: provider, configuration, report.
pub fn print_latency_table(reports: &[(String, String, StressTestReport)]) {
    println!("{}", latency_table(reports));
}

fn latency_table(reports: &[(String, String, StressTestReport)]) -> String {
    let mut lines = vec![format!(
        "{:<20} {:<20} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "provider", "config", "orch/s", "min ms", "p50 ms", "p90 ms", "p99 ms", "max ms"
    )];
    lines.extend(reports.iter().map(|(provider, config, report)| {
        let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
        format!(
            "{provider:<20} {config:<20} {:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>10.2}",
            report.result.orch_throughput,
            millis(report.latency.min),
            millis(report.latency.p50),
            millis(report.latency.p90),
            millis(report.latency.p99),
            millis(report.latency.max),
        )
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_stress_tests::result::Tally;

    #[test]
    fn the_table_has_a_head_and_one_aligned_row_per_result() {
        let result = Tally::default().result(Duration::from_secs(1), 5);
        let table = comparison_table(&[
            ("memory".to_owned(), "2/2".to_owned(), result.clone()),
            ("sqlite".to_owned(), "2/2".to_owned(), result),
        ]);
        assert_aligned(&table);
    }

    #[test]
    fn latencies_have_a_table_of_their_own() {
        let report = || Tally::default().report(Duration::from_secs(1), 5);
        let table = latency_table(&[
            ("memory".to_owned(), "2/2".to_owned(), report()),
            ("sqlite".to_owned(), "2/2".to_owned(), report()),
        ]);
        assert_aligned(&table);
        assert!(table.contains("p50 ms") && table.contains("p99 ms"), "{table}");
    }

    #[track_caller]
    fn assert_aligned(table: &str) {
        let widths: Vec<usize> = table.lines().map(str::len).collect();
        assert_eq!(widths.len(), 3);
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    }
}
