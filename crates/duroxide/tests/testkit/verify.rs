//! Everything that runs in a store against the code of today.

use std::{process::ExitCode, sync::Arc, time::Duration};

use duroxide::{
    OrchestrationContext,
    testing::{Progress, ReplayError, TestCluster, VerifyReport, verify_open_instances},
    typed::Handlers,
};

use crate::order::{charge, fan_out, handlers, nightly, order, refund};

/// Twenty orders and three loops that run, and something that has ended.
async fn some_open(cluster: &TestCluster) {
    let client = cluster.client();
    client.start::<fan_out>("ended", 1).await.unwrap().result().await.unwrap().unwrap();
    for n in 0..20 {
        client.start::<order>(format!("order-{n}"), n).await.unwrap();
    }
    for n in 0..3 {
        client.start::<nightly>(format!("nights-{n}"), 9).await.unwrap();
    }
    cluster.sleep(Duration::from_secs(10)).await;
}

/// Verifies a cluster whose nodes run the old code, and checks that the store has not changed.
fn verify(new: Handlers) -> (VerifyReport, Vec<Progress>) {
    TestCluster::builder().handlers(handlers()).run(async |cluster| {
        some_open(&cluster).await;
        let before = format!("{:?}", cluster.snapshot().await);
        let mut seen = Vec::new();
        let report =
            verify_open_instances(&cluster.store(), new, |progress| seen.push(progress)).await.unwrap();
        assert_eq!(format!("{:?}", cluster.snapshot().await), before, "it only reads");
        (report, seen)
    })
}

#[test]
fn unchanged_code_can_go_on_with_everything() {
    let (report, progress) = verify(handlers());
    assert_eq!((report.checked(), report.failed()), (23, 0));
    assert_eq!(report.exit_code(), ExitCode::SUCCESS);
    assert_eq!(report.to_string(), "23 open instances checked, 0 cannot go on");
    let counts: Vec<u64> = progress.iter().map(|progress| progress.checked).collect();
    assert_eq!(counts, (1..=23).collect::<Vec<u64>>());
    assert!(progress.iter().all(|progress| progress.total == 23));
}

/// Waits before it charges.
#[duroxide::orchestration(name = "order")]
async fn impatient(ctx: OrchestrationContext, amount: u64) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_secs(1)).await;
    ctx.activity::<charge>(amount).await.map_err(|error| error.to_string())
}

#[test]
fn changed_code_is_one_finding_for_all_that_differ_alike() {
    let new = Handlers::new()
        .activity::<charge>()
        .activity::<refund>()
        .orchestration::<impatient>()
        .orchestration::<nightly>();
    let (report, progress) = verify(new);
    assert_eq!((report.checked(), report.failed()), (23, 20));
    assert_eq!(report.exit_code(), ExitCode::from(1));
    let findings: Vec<_> = report.findings().collect();
    assert_eq!(findings.len(), 1, "{report}");
    assert_eq!((findings[0].name.as_str(), findings[0].version.as_str()), ("order", "1.0.0"));
    assert_eq!(findings[0].instances, 20);
    let ReplayError::Diverges(divergence) = &findings[0].error else { panic!("{report}") };
    assert_eq!(divergence.event_id, 2);
    assert!(divergence.location.unwrap().file().ends_with("verify.rs"));
    assert_eq!(progress.last().unwrap().failed, 20);
}

#[test]
fn a_version_that_is_gone_is_found() {
    let (report, _) = verify(Handlers::new().orchestration::<order>());
    let findings: Vec<_> = report.findings().collect();
    assert_eq!((findings.len(), findings[0].instances), (1, 3), "{report}");
    assert!(
        report.to_string().contains("no handler of orchestration 'nightly' 1.0.0 is registered"),
        "{report}"
    );
}

#[test]
fn handlers_that_cannot_be_registered_are_an_error() {
    TestCluster::builder().handlers(handlers()).run(async |cluster| {
        let twice = handlers().orchestration::<order>();
        let error = verify_open_instances(&cluster.store(), twice, |_| ()).await.unwrap_err();
        assert!(error.to_string().contains("order@1.0.0"), "{error}");
    });
}

/// On SQLite, in real time, while a node runs the checked instances.
#[tokio::test]
async fn nodes_may_run_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("orders.db").display());
    let store = duroxide::providers::sqlite::SqliteProvider::new(&url, None).await.unwrap();
    let store: Arc<dyn duroxide::providers::Provider> = Arc::new(store);
    let runtime =
        duroxide::runtime::Runtime::builder(Arc::clone(&store)).handlers(handlers()).build().await.unwrap();
    let client = duroxide::Client::new(Arc::clone(&store));
    for n in 0..50 {
        client.start::<order>(format!("order-{n}"), n).await.unwrap();
    }
    let report = loop {
        let report = verify_open_instances(&store, handlers(), |_| ()).await.unwrap();
        if report.checked() == 50 {
            break report;
        }
    };
    assert_eq!(report.failed(), 0, "{report}");
    runtime.shutdown(None).await;
}
