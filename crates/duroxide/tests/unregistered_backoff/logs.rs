//! The two warnings.

use duroxide::{Client, OrchestrationRegistry};
use tracing::Level;

use crate::{
    callers, echo,
    fixture::{
        File, ended, failure,
        logs::{Line, Logs},
        node, quick_options,
    },
    no_activities, no_orchestrations,
};

/// Starts an instance `i` of an orchestration on a node with these orchestrations and no activities, where it fails
/// after all attempts. Returns the log lines.
async fn logs_of_failing(orchestrations: OrchestrationRegistry, name: &str, version: Option<&str>) -> Logs {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    let runtime = node(&store, no_activities(), orchestrations, quick_options()).await;
    let client = Client::new(store);
    match version {
        Some(version) => client.start_orchestration_versioned("i", name, version, "x").await.unwrap(),
        None => client.start_orchestration("i", name, "x").await.unwrap(),
    }
    failure(ended(&client, "i").await);
    runtime.shutdown(None).await;
    logs
}

/// S0.5, S0.13 to S0.18, C5.
#[tokio::test]
async fn each_attempt_of_an_orchestration_logs_one_warning() {
    let logs = logs_of_failing(no_orchestrations(), "NoSuchOrchestration", None).await;
    let lines = logs.with("Orchestration not registered");
    check_series(&lines, "Orchestration");
    for line in &lines {
        assert_eq!(line.field("instance"), "i");
        assert_eq!(line.field("orchestration_name"), "NoSuchOrchestration");
        assert_eq!(line.field("version"), "latest", "none was asked for");
    }
}

/// S0.17, S0.33: the version that was asked for is in the warning.
#[tokio::test]
async fn the_warning_names_the_version_that_was_asked_for() {
    let orchestrations = OrchestrationRegistry::builder().register("Echo", echo).build();
    let logs = logs_of_failing(orchestrations, "Echo", Some("7.0.0")).await;
    let lines = logs.with("Orchestration not registered");
    check_series(&lines, "Orchestration");
    assert!(lines.iter().all(|line| line.field("version") == "7.0.0"), "{lines:?}");
}

/// S0.13 to S0.16, S0.19, S0.20.
#[tokio::test]
async fn each_attempt_of_an_activity_logs_one_warning() {
    let logs = logs_of_failing(callers(), "Caller", None).await;
    let lines = logs.with("Activity not registered");
    check_series(&lines, "Activity");
    for line in &lines {
        assert_eq!(line.field("instance"), "i");
        assert_eq!(line.field("execution_id"), "1");
        assert_eq!(line.field("activity_name"), "NewActivity");
        assert_eq!(line.field("activity_id"), "2");
        assert!(line.field("worker_id").starts_with("work-"), "{line:?}");
        let _ = line.field("activity_tag");
    }
}

/// S1.21, S2.9, C6: when it ends, the warning gives the general reason.
#[tokio::test]
async fn the_last_warning_says_that_the_handler_may_be_elsewhere() {
    let logs = logs_of_failing(no_orchestrations(), "NoSuchOrchestration", None).await;
    let lines = logs.with("Orchestration message exceeded max attempts, marking as poison");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].level, Level::WARN);
    let sentence = "work item could not be processed on this node (orchestration not registered here, or execution \
                    history is unsupported)";
    assert!(lines[0].field("reason").starts_with(sentence), "{:?}", lines[0]);
    assert_eq!((lines[0].field("attempt_count"), lines[0].field("max_attempts")), ("4", "3"));
}

/// One line per attempt, counting down to the fetch that poisons.
#[track_caller]
fn check_series(lines: &[Line], what: &str) {
    let series: Vec<_> = lines
        .iter()
        .map(|line| {
            (line.field("attempt_count"), line.field("max_attempts"), line.field("remaining_attempts"))
        })
        .collect();
    assert_eq!(series, [("1", "3", "3"), ("2", "3", "2"), ("3", "3", "1")]);
    for (line, (remaining, secs)) in lines.iter().zip([(3, 0.001), (2, 0.002), (1, 0.004)]) {
        assert_eq!(line.level, Level::WARN);
        assert_eq!(line.target, "duroxide::runtime");
        let logged: f64 = line.field("backoff_secs").parse().unwrap();
        assert!((logged - secs).abs() < 1e-6, "{logged} is not {secs}");
        let text = format!(
            "{what} not registered, abandoning with 0.0s backoff (will poison in {remaining} more attempts)"
        );
        assert_eq!(line.message, text);
    }
}
