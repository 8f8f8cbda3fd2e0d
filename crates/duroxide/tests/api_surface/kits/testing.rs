//! The test kit for programs.

use std::{process::ExitCode, sync::Arc, time::Duration};

use duroxide::{
    ActivityContext, Client, OrchestrationRegistry, RuntimeOptions,
    client::RecordedHistory,
    providers::{Provider, WorkItem},
    testing::{
        ClusterBuilder, FindingReport, Mock, MockClient, MockClientBuilder, Progress, ReplayDirError,
        ReplayError, StoreFault, TestActivity, TestCluster, TextMock, VerifyError, VerifyReport, for_seeds,
        replay, replay_dir, verify_open_instances,
    },
    typed::{Activity, Handlers, Orchestration},
};

fn a_cluster_is_built<A: Activity>(mock: &Mock<A>, text: &TextMock) {
    let builder: ClusterBuilder = TestCluster::builder()
        .handlers(Handlers::new())
        .mock(mock)
        .mock_text(text)
        .seed(7)
        .options(|options: &mut RuntimeOptions| options.max_attempts = 3)
        .time_limit(Duration::from_secs(1));
    let _: u64 = builder.sqlite("folder").run(async |cluster: TestCluster| cluster.seed());
    for_seeds(0..1, |cluster: ClusterBuilder| drop(cluster));
}

async fn a_cluster_is_used(cluster: TestCluster) {
    let _: (Client, Arc<dyn Provider>) = (cluster.client(), cluster.store());
    let _: (std::time::SystemTime, Duration, u64) = (cluster.now(), cluster.elapsed(), cluster.awaits());
    cluster.sleep(Duration::ZERO).await;
    let _: usize = cluster.add_node(Handlers::new()).await;
    cluster.crash(0);
    cluster.restart(0).await;
    cluster.pause(0).await;
    cluster.resume(0);
    cluster.upgrade(0, Handlers::new()).await;
    cluster.shutdown(0).await;
    cluster.store_fails(StoreFault::next(1).of("commit_round").answer_lost());
    let _: Vec<duroxide::Event> = cluster.history("i").await;
    let _ = cluster.snapshot().await;
}

fn activities_are_mocked<A: Activity>(output: &A::Output, error: &A::Error) {
    let _: Vec<A::Input> =
        Mock::<A>::returning(output).failing_first(1, error).taking(Duration::ZERO).calls();
    let failing = Mock::<A>::failing(error);
    let _ = (failing.clone(), failing, Mock::<A>::answering(|_| panic!("never called")));
    let text = TextMock::new("a", Ok).failing_first(1, "no").taking(Duration::ZERO);
    let _: Vec<String> = text.calls();
    let run = TestActivity::of::<A>().instance("i").orchestration("o", "1.0.0").scheduled_by(2).attempt(1);
    let _ = run.cancellation();
    let _: ActivityContext = run.session("s").tag("t").context();
}

async fn a_client_is_mocked<O: Orchestration>(client: Client) {
    let builder: MockClientBuilder = MockClient::builder().answering::<O>(|_| panic!("never called"));
    let mock: MockClient = builder.build().await;
    let _: (Client, Vec<WorkItem>, Vec<(String, O::Input)>) =
        (mock.client(), mock.requests(), mock.starts::<O>());
    let _: ActivityContext = TestActivity::new("a").client(client).context();
}

async fn histories_are_replayed(client: Client, registry: OrchestrationRegistry) {
    let history: RecordedHistory = client.export_history("i").await.unwrap();
    let _: u32 = RecordedHistory::FORMAT;
    let _: String = history.to_json().unwrap();
    history.write("file").unwrap();
    let _: Result<RecordedHistory, serde_json::Error> = RecordedHistory::from_json("");
    let _: Result<(), ReplayError> = replay(history, &registry);
    let _: Result<usize, ReplayDirError> = replay_dir("folder", Handlers::new());
}

async fn open_instances_are_verified(store: Arc<dyn Provider>) -> Result<(), VerifyError> {
    let report: VerifyReport = verify_open_instances(&store, Handlers::new(), |progress: Progress| {
        let _: (u64, u64, u64) = (progress.checked, progress.failed, progress.total);
    })
    .await?;
    let _: (u64, u64, u64, ExitCode) =
        (report.checked(), report.failed(), report.ended_meanwhile(), report.exit_code());
    for FindingReport { name, version, instances, example, error, .. } in report.findings() {
        let _: (&String, &String, &u64, &String, &ReplayError) = (name, version, instances, example, error);
        let ReplayError::Diverges(found) = error else { continue };
        let _: (u64, &str, &str) = (found.event_id, &found.recorded, &found.found);
        let _: Option<&'static std::panic::Location<'static>> = found.location;
    }
    Ok(())
}
