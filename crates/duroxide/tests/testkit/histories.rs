//! Recorded histories against the code of today.

use std::{fs, path::Path, time::Duration};

use duroxide::{
    OrchestrationContext, OrchestrationRegistry,
    client::RecordedHistory,
    testing::{TestCluster, replay_dir},
    typed::Handlers,
};

use crate::order::{charge, fan_out, handlers, nightly, order};

/// Histories of instances that wait, have ended, failed and continued as new.
async fn record(cluster: TestCluster, folder: &Path) {
    let client = cluster.client();
    client.start::<order>("waiting", 1).await.unwrap();
    let approved = client.start::<order>("approved", 2).await.unwrap();
    // Until its first turn has run: an event that comes sooner is recorded before the code is asked.
    cluster.sleep(Duration::from_millis(1)).await;
    approved.raise("approval", &"Kim").await.unwrap();
    client.start::<nightly>("nights", 9).await.unwrap();
    client.start::<fan_out>("many", 4).await.unwrap().result().await.unwrap().unwrap();
    cluster.sleep(Duration::from_secs(100)).await;
    client.handle::<order>("approved").raise("approval", &"Kim").await.unwrap();
    client.start::<order>("refused", 3).await.unwrap().result().await.unwrap().unwrap_err();
    client.start::<order>("cancelled", 5).await.unwrap().cancel("changed my mind").await.unwrap();
    client.handle::<order>("cancelled").result().await.unwrap().unwrap_err();
    for id in client.list_all_instances().await.unwrap() {
        let history = client.export_history(&id).await.unwrap();
        history.write(folder.join(format!("{id}.json"))).unwrap();
    }
}

fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cluster = TestCluster::builder().handlers(handlers());
    cluster.run(async |cluster| record(cluster, folder.path()).await);
    folder
}

#[test]
fn the_code_that_made_histories_replays_them() {
    assert_eq!(replay_dir(recorded().path(), handlers()).unwrap(), 6);
}

#[test]
fn an_exported_history_has_a_documented_form() {
    let folder = recorded();
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("many.json")).unwrap()).unwrap();
    let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["events", "execution_id", "format", "instance", "orchestration", "version"]);
    assert_eq!((json["format"].as_u64(), json["orchestration"].as_str()), (Some(1), Some("fan_out")));
    assert_eq!(json["events"].as_array().unwrap().len(), 11);
}

/// Code that reserves before it charges.
#[duroxide::orchestration(name = "order")]
async fn reordered(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
    ctx.set_status(&"begun");
    ctx.activity::<charge>(amount).await.map_err(|error| error.to_string())
}

const CALL: u32 = line!() - 4;

#[test]
fn changed_code_is_shown_with_file_event_both_sides_and_line() {
    let changed = Handlers::new()
        .activity::<charge>()
        .orchestration::<reordered>()
        .orchestration::<nightly>()
        .orchestration::<fan_out>();
    let error = replay_dir(recorded().path(), changed).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 5, "{error}");
    assert_eq!(lines[0], "4 of 6 histories cannot be replayed:");
    assert!(
        lines[1].contains("approved.json: event 2: history says ActivityScheduled { name: \"charge\""),
        "{error}"
    );
    assert!(lines[1].contains("; the code asked for CustomStatusUpdated"), "{error}");
    assert!(lines[1].ends_with(&format!("tests/testkit/histories.rs:{CALL}:9")), "{error} {CALL}");
}

#[test]
fn a_missing_version_is_named() {
    let error = replay_dir(recorded().path(), Handlers::new().orchestration::<nightly>()).unwrap_err();
    assert!(
        error.to_string().contains("no handler of orchestration 'fan_out' 1.0.0 is registered"),
        "{error}"
    );
}

#[test]
fn a_folder_without_histories_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let error = replay_dir(folder.path(), handlers()).unwrap_err().to_string();
    assert!(error.starts_with("there is no recorded history (*.json) in "), "{error}");
    let error = replay_dir(folder.path().join("missing"), handlers()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read folder "), "{error}");
}

#[test]
fn files_that_are_no_history_of_this_format_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.json"), "{\"format\": 2, \"chapters\": []}").unwrap();
    fs::write(folder.path().join("b.json"), "{").unwrap();
    let error = replay_dir(folder.path(), handlers()).unwrap_err().to_string();
    assert!(error.contains("a.json: the history cannot be read: format 2 is not known"), "{error}");
    assert!(error.contains("b.json: the history cannot be read: EOF"), "{error}");
    assert!(RecordedHistory::from_json("{\"format\": 1}").is_err());
}

/// The key-values that earlier executions left are part of the start of an execution, and the changes of the execution
/// itself set is not.
#[test]
fn key_values_are_those_at_the_start() {
    let count = |end: u32| {
        OrchestrationRegistry::builder().register("Count", move |ctx: OrchestrationContext, _| async move {
            let count: u32 = ctx.get_kv_value("count").map_or(0, |text| text.parse().unwrap());
            ctx.set_kv_value("count", (count + 1).to_string());
            ctx.schedule_activity("Note", count.to_string()).await?;
            if count == end { Ok(count.to_string()) } else { ctx.continue_as_new("").await }
        })
    };
    let note = duroxide::testing::TextMock::new("Note", Ok);
    let folder = tempfile::tempdir().unwrap();
    let handlers = || Handlers::new().orchestrations(count(3).build());
    TestCluster::builder().handlers(handlers()).mock_text(&note).run(async |cluster| {
        let client = cluster.client();
        client.start_orchestration("c", "Count", "").await.unwrap();
        client.wait_for_orchestration("c", Duration::from_secs(60)).await.unwrap();
        let history = client.export_history("c").await.unwrap();
        assert_eq!((history.execution_id, history.key_values["count"].value.as_str()), (4, "3"));
        history.write(folder.path().join("c.json")).unwrap();
    });
    replay_dir(folder.path(), handlers()).unwrap();
}

#[test]
fn an_unknown_instance_has_no_history() {
    TestCluster::builder().handlers(handlers()).run(async |cluster| {
        let error = cluster.client().export_history("nobody").await.unwrap_err();
        assert!(matches!(error, duroxide::ClientError::InstanceNotFound { .. }), "{error}");
    });
}
