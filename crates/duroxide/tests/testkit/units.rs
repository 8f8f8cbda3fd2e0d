//! Unit tests of activities, and of code that starts orchestrations.

use duroxide::{
    ActivityContext, Client, ClientError,
    testing::{MockClient, TestActivity},
};

use crate::order::{charge, order};

#[tokio::test]
async fn an_activity_is_called_like_any_function() {
    let ctx = TestActivity::of::<charge>().instance("o-1").context();
    assert_eq!(ctx.activity_name(), "charge");
    assert_eq!(charge(ctx, 700).await.unwrap(), "receipt of 700 for o-1");
}

#[tokio::test]
async fn a_context_has_the_values_of_the_test() {
    let run = TestActivity::new("Paint").orchestration("House", "2.0.0").scheduled_by(7).attempt(3);
    let ctx = run.session("s").tag("gpu").context();
    assert_eq!((ctx.orchestration_name(), ctx.orchestration_version()), ("House", "2.0.0"));
    assert_eq!((ctx.session_id(), ctx.tag(), ctx.attempt()), (Some("s"), Some("gpu"), 3));
    assert_eq!(ctx.idempotency_key(), "test/1/7");
}

#[tokio::test]
async fn an_activity_can_be_asked_to_stop() {
    async fn paint(ctx: ActivityContext) -> &'static str {
        ctx.cancelled().await;
        "stopped"
    }
    let run = TestActivity::new("Paint");
    let stop = run.cancellation();
    let painting = tokio::spawn(paint(run.context()));
    stop.cancel();
    assert_eq!(painting.await.unwrap(), "stopped");
}

async fn check_out(client: &Client, amount: u64) -> Result<String, ClientError> {
    let order = client.start::<order>("order-1", amount).await?;
    order.raise("approval", &"Kim").await?;
    Ok(order.result().await?.unwrap_or_else(|error| error.to_string()))
}

#[tokio::test]
async fn a_mock_client_notes_requests_and_gives_answers() {
    let mock = MockClient::builder().answering::<order>(|amount| match amount {
        0 => Err("nothing to pay".to_owned()),
        _ => Ok(format!("{amount} paid")),
    });
    let mock = mock.build().await;
    assert_eq!(check_out(&mock.client(), 700).await.unwrap(), "700 paid");
    assert_eq!(mock.starts::<order>(), [("order-1".to_owned(), 700)]);
    let kinds: Vec<&str> = mock.requests().iter().map(|item| item.kind()).collect();
    assert_eq!(kinds, ["StartOrchestration", "ExternalRaised"]);

    let mock = MockClient::builder().answering::<order>(|_| Err("nothing to pay".to_owned())).build().await;
    assert_eq!(check_out(&mock.client(), 0).await.unwrap(), "nothing to pay");
}

#[tokio::test]
async fn an_orchestration_without_an_answer_does_not_end() {
    let mock = MockClient::builder().build().await;
    mock.client().start::<order>("order-1", 1).await.unwrap();
    mock.client().start_or_get::<order>("order-2", 2).await.unwrap();
    assert_eq!(mock.starts::<order>(), [("order-1".to_owned(), 1), ("order-2".to_owned(), 2)]);
}
