//! The log lines for operators.

use std::sync::Arc;

use duroxide::{Client, RuntimeOptions, SemverRange, providers::Provider};
use semver::Version;
use tracing::Level;

use crate::{
    Bypass,
    fixture::{File, ended, failure, intercept::Intercepted, logs::Logs, node},
    no_activities, pinned, supporting, waiting,
};

/// S3.T30, S3.20.
#[tokio::test]
async fn runtime_logs_warning_on_incompatible_abandon() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "future", "99.0.0").await;
    let store: Arc<dyn Provider> = Intercepted::new(inner, Bypass::default());
    let runtime = node(&store, no_activities(), waiting(), supporting("0.0.0", "1.0.0")).await;
    failure(ended(&Client::new(store), "future").await);
    runtime.shutdown(None).await;

    let lines = logs.with("Execution pinned at incompatible version, abandoning (runtime-side check)");
    let attempts: Vec<_> = lines.iter().map(|line| line.field("attempt_count")).collect();
    assert_eq!(attempts, ["1", "2", "3"]);
    for line in &lines {
        assert_eq!((line.level, line.target.as_str()), (Level::WARN, "duroxide::runtime"));
        assert_eq!((line.field("instance"), line.field("pinned_version")), ("future", "99.0.0"));
        assert_eq!(line.field("supported_range"), ">=0.0.0, <=1.0.0");
    }
}

/// S2.9, S2.10, S2.19, S2.23: both causes have the same wording: the WARN of work without a handler, the error of
/// an execution that no node can replay.
#[tokio::test]
async fn both_causes_have_the_same_wording() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let inner = file.open().await;
    pinned(&inner, "future", "99.0.0").await;
    let client = Client::new(inner.clone());
    client.start_orchestration("ghost", "NoSuchOrchestration", "").await.unwrap();
    let store: Arc<dyn Provider> = Intercepted::new(inner, Bypass::default());
    let runtime = node(&store, no_activities(), waiting(), supporting("0.0.0", "1.0.0")).await;
    let of_version = failure(ended(&client, "future").await);
    let of_handler = failure(ended(&client, "ghost").await);
    runtime.shutdown(None).await;

    let sentence = "work item could not be processed on this node (orchestration not registered here, or execution \
                    history is unsupported)";
    assert_eq!(
        of_version.display_message(),
        format!(
            "unsupported version: {sentence}: execution pinned at 99.0.0, supported >=0.0.0, <=1.0.0, attempt 4 (max 3)"
        )
    );
    assert_eq!(of_handler.display_message(), "poison: orchestration ghost exceeded 4 attempts (max 3)");
    let lines = logs.with("Orchestration message exceeded max attempts, marking as poison");
    let reasons: Vec<_> = lines.iter().map(|line| (line.field("instance"), line.field("reason"))).collect();
    let reason =
        format!("{sentence}: orchestration NoSuchOrchestration@latest is not registered, attempt 4 (max 3)");
    assert_eq!(reasons, [("ghost", reason.as_str())]);
}

/// S3.T31, S3.45, 17.2: several ranges are joined.
#[tokio::test]
async fn runtime_logs_capability_declaration_at_startup() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    let range = SemverRange::new(Version::new(0, 3, 0), Version::new(0, 4, 0));
    let options = RuntimeOptions { extra_replay_versions: vec![range], ..supporting("0.1.0", "0.2.0") };
    node(&store, no_activities(), waiting(), options).await.shutdown(None).await;

    let lines = logs.with("Orchestration dispatcher capability filter configured");
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0].level, lines[0].target.as_str()), (Level::INFO, "duroxide::runtime"));
    assert_eq!(lines[0].field("supported_range"), ">=0.1.0, <=0.2.0 | >=0.3.0, <=0.4.0");
    assert!(logs.with("reach above this build").is_empty());
}

/// S3.45, S3.9, 17.2: without a setting the range is from 0.0.0 to the build, and nothing is wrong with it.
#[tokio::test]
async fn the_default_range_is_declared_too() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    node(&store, no_activities(), waiting(), RuntimeOptions::default()).await.shutdown(None).await;
    let lines = logs.with("Orchestration dispatcher capability filter configured");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].field("supported_range"), concat!(">=0.0.0, <=", env!("CARGO_PKG_VERSION")));
    assert!(logs.with("reach above this build").is_empty());
}

/// The first line of every runtime.
#[tokio::test]
async fn a_runtime_logs_its_version_and_its_provider() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    node(&store, no_activities(), waiting(), RuntimeOptions::default()).await.shutdown(None).await;
    let build = env!("CARGO_PKG_VERSION");
    let lines = logs.with(&format!("duroxide runtime ({build}) starting with provider sqlite ("));
    assert_eq!(lines.len(), 1);
}

/// C10, S3.29, 17.2: a range above the own build is allowed, and said.
#[tokio::test]
async fn a_range_above_the_build_is_warned_about() {
    let (logs, _guard) = Logs::capture();
    let file = File::new();
    let store = file.open().await;
    node(&store, no_activities(), waiting(), supporting("0.0.0", "99.0.0")).await.shutdown(None).await;
    let lines = logs.with("reach above this build");
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0].level, lines[0].field("supported_range")), (Level::WARN, ">=0.0.0, <=99.0.0"));
}
