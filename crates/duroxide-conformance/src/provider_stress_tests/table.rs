use super::StressTestResult;

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::provider_stress_tests::result::Tally;

    #[test]
    fn the_table_has_a_head_and_one_aligned_row_per_result() {
        let result = Tally::default().result(Duration::from_secs(1), 5);
        let table = comparison_table(&[
            ("memory".to_owned(), "2/2".to_owned(), result.clone()),
            ("sqlite".to_owned(), "2/2".to_owned(), result),
        ]);
        let widths: Vec<usize> = table.lines().map(str::len).collect();
        assert_eq!(widths.len(), 3);
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    }
}
