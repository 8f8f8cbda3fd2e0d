//! The output of the examples with exporters: spans and metrics.

use std::collections::BTreeSet;

use crate::run;

/// Ids and times differ from run to run, so only names, nesting and outcomes are compared. A span is exported when it ends,
/// and the request may end before or after the first turn.
#[test]
fn opentelemetry() {
    let output = run("opentelemetry");
    assert!(output.ends_with("Vienna by train, seat 6\n"), "{output}");
    let spans: Vec<_> = output.split("\nSpan #").skip(1).collect();
    assert_eq!(spans.len(), 5, "{output}");
    let find = |text: &str| *spans.iter().find(|span| span.contains(text)).expect("the span is exported");
    let (request, seat) = (find(": request\n"), find(": choose_seat\n"));
    let (first_turn, last_turn) = (find("(\"running\")"), find("(\"completed\")"));
    let activity = find(": activity_run\n");
    for (span, name, outcome, parent) in [
        (first_turn, "orchestration_turn", "running", request),
        (activity, "activity_run", "success", first_turn),
        (last_turn, "orchestration_turn", "completed", request),
    ] {
        assert_eq!(exported(span, "Name         "), name);
        assert_eq!(exported(span, "ParentSpanId "), exported(parent, "SpanId       "));
        for (field, value) in [
            ("instance_id", "trip-1"),
            ("execution_id", "1"),
            ("orchestration_name", "Trip"),
            ("orchestration_version", "1.0.0"),
            ("outcome", outcome),
        ] {
            assert_eq!(exported(span, &format!("->  {field}")), format!("String(Owned(\"{value}\"))"));
        }
    }
    assert_eq!(exported(request, "ParentSpanId "), "None (root span)");
    assert_eq!(exported(seat, "ParentSpanId "), exported(activity, "SpanId       "));
    let trace = exported(request, "TraceId      ");
    assert!(spans.iter().all(|span| exported(span, "TraceId      ") == trace), "{output}");
    assert!(first_turn.contains("Name      : planning a trip to Vienna"), "{first_turn}");
}

/// The value after a field of an exported span. The scope comes before the span and has a name too.
#[track_caller]
fn exported<'a>(span: &'a str, field: &str) -> &'a str {
    let (_, fields) = span.split_once("\n\n").expect("the scope ends with an empty line");
    let mut values = fields.lines().filter_map(|line| line.trim().strip_prefix(field)?.strip_prefix(": "));
    values.next().unwrap_or_else(|| panic!("no {field} in {span}"))
}

/// Metrics that a healthy program does not touch.
const OF_TROUBLE: [&str; 16] = [
    "duroxide_activity_configuration_errors_total",
    "duroxide_activity_infrastructure_errors_total",
    "duroxide_activity_poison_total",
    "duroxide_audit_differences_total",
    "duroxide_dead_letters_total",
    "duroxide_lock_losses_total",
    "duroxide_orchestration_configuration_errors_total",
    "duroxide_orchestration_incompatible_version_abandoned_total",
    "duroxide_orchestration_infrastructure_errors_total",
    "duroxide_orchestration_poison_total",
    "duroxide_poison_detected_total",
    "duroxide_provider_errors_total",
    "duroxide_provider_filtered_items_total",
    "duroxide_stranded_items",
    "duroxide_unregistered_activity_backoff_total",
    "duroxide_unregistered_orchestration_backoff_total",
];

/// The exporter shows the metrics that the guide lists under the same names, and histograms as such, with the
/// buckets that the dashboard asks for.
#[test]
fn prometheus() {
    let output = run("prometheus");
    let of_guide =
        include_str!("../../../../docs/operating.md").lines().filter(|line| line.starts_with("| `duroxide_"));
    let documented = of_guide.flat_map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (names, kind) = (cells.next().expect("a name"), cells.next().expect("a kind"));
        names.split(", ").map(move |name| (name.trim_matches('`'), kind))
    });
    let expected: BTreeSet<_> = documented.filter(|(name, _)| !OF_TROUBLE.contains(name)).collect();
    let types = output.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    assert_eq!(types.collect::<BTreeSet<_>>(), expected);
    for (name, _) in expected.iter().filter(|(_, kind)| *kind == "histogram") {
        assert!(output.contains(&format!("\n{name}_bucket{{")), "{name} has no buckets:\n{output}");
    }
    for (series, count) in [
        (r#"starts_total{orchestration_name="Order",version="1.0.0",initiated_by="client"}"#, 20),
        (r#"starts_total{orchestration_name="Ship",version="1.0.0",initiated_by="suborchestration"}"#, 32),
        (r#"continue_as_new_total{orchestration_name="Order"}"#, 16),
    ] {
        assert!(
            output.contains(&format!("\nduroxide_orchestration_{series} {count}\n")),
            "{series}:\n{output}"
        );
    }
}
