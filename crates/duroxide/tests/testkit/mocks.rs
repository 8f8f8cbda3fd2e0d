//! Stand-ins for activities.

use std::time::Duration;

use duroxide::{
    OrchestrationRegistry,
    testing::{Mock, TestCluster, TextMock},
    typed::Handlers,
};

use crate::order::{charge, handlers, order, refund};

#[test]
fn a_mock_notes_its_calls_and_replaces_the_activity() {
    let charge = Mock::<charge>::answering(|amount| Ok(format!("{amount} taken")));
    let refund = Mock::<refund>::returning(&());
    let cluster = TestCluster::builder().handlers(handlers()).mock(&charge).mock(&refund);
    cluster.run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        order.result().await.unwrap().unwrap_err();
    });
    assert_eq!(charge.calls(), [700]);
    assert_eq!(refund.calls(), ["700 taken"]);
}

#[test]
fn a_mock_fails_as_often_as_configured() {
    let charge = Mock::<charge>::returning(&"receipt".to_owned()).failing_first(2, &"busy".to_owned());
    let cluster = TestCluster::builder().handlers(handlers()).mock(&charge);
    cluster.run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        order.raise("approval", &"Kim").await.unwrap();
        let _ = order.result().await.unwrap();
    });
    assert_eq!(charge.calls(), [700, 700, 700]);
}

#[test]
fn a_mock_can_fail_always() {
    let charge = Mock::<charge>::failing(&"no such card".to_owned());
    let ended = TestCluster::builder().handlers(handlers()).mock(&charge).run(async |cluster| {
        let order = cluster.client().start::<order>("o-1", 700).await.unwrap();
        order.result().await.unwrap()
    });
    assert_eq!(ended.unwrap_err().to_string(), "no such card");
    assert_eq!(charge.calls().len(), 3);
}

#[test]
fn activities_called_by_name_have_mocks_too() {
    let greet = OrchestrationRegistry::builder()
        .register("Greet", |ctx, name| async move { ctx.schedule_activity("Hello", name).await })
        .build();
    let hello = TextMock::new("Hello", |name| Ok(format!("hello {name}"))).failing_first(0, "");
    let cluster = TestCluster::builder().handlers(Handlers::new().orchestrations(greet)).mock_text(&hello);
    cluster.run(async |cluster| {
        cluster.client().start_orchestration("g", "Greet", "world").await.unwrap();
        let ended: Result<String, String> =
            cluster.client().wait_for_orchestration_typed("g", Duration::from_secs(9)).await.unwrap();
        assert_eq!(ended.unwrap(), "hello world");
    });
    assert_eq!(hello.calls(), ["world"]);
}
