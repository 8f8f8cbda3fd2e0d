//! The dashboard for Grafana against the list of metrics: names, kinds and labels.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::{Kind, METRICS},
    documented,
};

const DASHBOARD: &str = include_str!("../../../../../../docs/grafana/duroxide.json");

/// Labels that a histogram and Prometheus add.
const ADDED_LABELS: [&str; 3] = ["le", "job", "instance"];

/// Words of PromQL and names of variables, which are neither metrics nor labels.
const WORDS: [&str; 14] = [
    "sum",
    "max",
    "by",
    "rate",
    "increase",
    "histogram_quantile",
    "or",
    "vector",
    "label_values",
    "h",
    "job",
    "orchestration",
    "__rate_interval",
    "instance",
];

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).unwrap()
}

/// The texts of all fields of this name, at any depth.
fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    let below = |values: Vec<&'a Value>| values.into_iter().flat_map(|value| texts(value, field)).collect();
    match value {
        Value::Object(fields) => {
            let mut found: Vec<&str> = below(fields.values().collect());
            found.extend(fields.get(field).and_then(Value::as_str));
            found
        }
        Value::Array(values) => below(values.iter().collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn expressions(dashboard: &Value) -> Vec<&str> {
    let expressions = texts(dashboard, "expr");
    assert!(expressions.len() > 40, "{}", expressions.len());
    expressions
}

/// Names in an expression, with the text before each. Texts in quotes are left out.
fn words(expression: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for unquoted in expression.split('"').step_by(2) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = unquoted;
        while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let (before, from) = rest.split_at(start);
            let end = from.find(|c: char| !is_name(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            found.push((before.to_owned(), word.to_owned()));
            rest = after;
        }
    }
    found
}

/// The name of the metric behind a series: a histogram has three, and no other form.
fn metric_of(series: &str) -> (&'static str, Kind) {
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| series.strip_suffix(suffix));
    let found = METRICS.iter().find(|(kind, name, ..)| match kind {
        Kind::Histogram => base == Some(name),
        Kind::Counter | Kind::Gauge => series == *name,
    });
    let (kind, name, ..) = found.unwrap_or_else(|| panic!("no metric is exported as {series}"));
    (name, *kind)
}

#[test]
fn every_expression_uses_metrics_that_exist_as_what_they_are() {
    let dashboard = dashboard();
    for expression in expressions(&dashboard) {
        let words = words(expression);
        let series = |word: &str| word.starts_with("duroxide_");
        assert!(words.iter().any(|(_, word)| series(word)), "{expression}");
        let mut function = "";
        for (before, word) in &words {
            if series(word) {
                let is_rate = before == "(" && matches!(function, "rate" | "increase");
                assert_eq!(is_rate, metric_of(word).1 != Kind::Gauge, "{word} in {expression}");
            }
            function = word;
        }
    }
}

/// A misspelt label would give an empty panel.
#[test]
fn every_label_in_an_expression_is_one_of_its_metric() {
    for expression in expressions(&dashboard()) {
        let words: BTreeSet<String> = words(expression).into_iter().map(|(_, word)| word).collect();
        let metrics: BTreeSet<&str> =
            words.iter().filter(|word| word.starts_with("duroxide_")).map(|word| metric_of(word).0).collect();
        let labels: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .filter(|word| !word.starts_with("duroxide_") && !WORDS.contains(word))
            .filter(|word| !ADDED_LABELS.contains(word))
            .collect();
        for (name, _, documented) in documented().filter(|(name, ..)| metrics.contains(name)) {
            for label in &labels {
                assert!(documented.contains(&format!("`{label}`")), "{name} has no {label}: {expression}");
            }
        }
    }
}

#[test]
fn variables_and_legends_ask_for_labels_that_exist() {
    let dashboard = dashboard();
    for query in texts(&dashboard, "definition") {
        let (metric, label) =
            query.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap().split_once(", ").unwrap();
        let (_, _, labels) = documented().find(|(name, ..)| *name == metric).unwrap();
        assert!(ADDED_LABELS.contains(&label) || labels.contains(&format!("`{label}`")), "{query}");
    }
    for target in dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
    {
        let (expression, legend) =
            (target["expr"].as_str().unwrap(), target["legendFormat"].as_str().unwrap());
        for label in legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap()) {
            let is_kept = expression.split("by (").skip(1).any(|rest| {
                let (labels, _) = rest.split_once(')').unwrap();
                labels.split(", ").any(|kept| kept == label)
            });
            let is_whole = !expression.contains('(');
            assert!(is_kept || (is_whole && ADDED_LABELS.contains(&label)), "{legend}: {expression}");
        }
    }
}

/// Every panel asks the data source that the user chooses, and none covers another.
#[test]
fn the_dashboard_can_be_imported() {
    let dashboard = dashboard();
    let source = &dashboard["templating"]["list"][0];
    assert_eq!((source["name"].as_str(), source["type"].as_str()), (Some("datasource"), Some("datasource")));
    let mut cells = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        }
        let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        for cell in
            (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
        {
            assert!(cell.0 < 24 && cells.insert(cell), "{panel}");
        }
    }
    for expression in expressions(&dashboard) {
        let count = |c: char| expression.matches(c).count();
        assert_eq!(
            (count('('), count('{'), count('[')),
            (count(')'), count('}'), count(']')),
            "{expression}"
        );
    }
}
