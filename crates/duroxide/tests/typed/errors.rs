//! Errors come back as themselves.

use std::{error::Error, fmt};

use duroxide::{OrchestrationRegistry, prelude::*, runtime::registry::ActivityRegistry};
use serde::{Deserialize, Serialize};

use super::store;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum ChargeError {
    Declined { left: u32 },
    NoSuchCard,
}

impl fmt::Display for ChargeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined { left } => write!(f, "declined, {left} left"),
            Self::NoSuchCard => f.write_str("no such card"),
        }
    }
}

/// An error that another one is a part of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum OrderError {
    Charge(CallError<ChargeError>),
    Empty,
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Charge(error) => write!(f, "charge: {error}"),
            Self::Empty => f.write_str("empty"),
        }
    }
}

impl Error for OrderError {}

impl From<CallError<ChargeError>> for OrderError {
    fn from(error: CallError<ChargeError>) -> Self {
        Self::Charge(error)
    }
}

#[duroxide::activity]
async fn charge(_ctx: ActivityContext, card: String) -> Result<u32, ChargeError> {
    match card.as_str() {
        "none" => Err(ChargeError::NoSuchCard),
        "poor" => Err(ChargeError::Declined { left: 3 }),
        "broken" => panic!("the card reader burns"),
        _ => Ok(7),
    }
}

#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext, card: String) -> Result<u32, OrderError> {
    if card.is_empty() {
        return Err(OrderError::Empty);
    }
    match ctx.activity::<charge>(card).await {
        Err(CallError::Failed(ChargeError::Declined { left })) => Ok(left),
        other => Ok(other?),
    }
}

#[duroxide::orchestration]
async fn parent(ctx: OrchestrationContext, card: String) -> Result<u32, CallError<OrderError>> {
    ctx.child::<order>(card).await
}

#[tokio::test]
async fn an_error_comes_back_as_itself_through_activity_child_and_client() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .activity::<charge>()
        .orchestration::<order>()
        .orchestration::<parent>()
        .build()
        .await
        .unwrap();
    let result =
        async |id: &str, card: &str| client.start_and_wait::<order>(id, card.to_owned()).await.unwrap();
    assert_eq!(result("good", "good").await, Ok(7));
    assert_eq!(result("poor", "poor").await, Ok(3), "matched in the orchestration");
    assert_eq!(result("empty", "").await, Err(CallError::Failed(OrderError::Empty)));
    let no_card = OrderError::Charge(CallError::Failed(ChargeError::NoSuchCard));
    assert_eq!(result("none", "none").await, Err(CallError::Failed(no_card)));

    let through_child =
        client.start_and_wait::<parent>("child", "none".to_owned()).await.unwrap().unwrap_err();
    assert_eq!(through_child.to_string(), "charge: no such card");
    let CallError::Failed(CallError::Failed(OrderError::Charge(CallError::Failed(error)))) = through_child
    else {
        panic!("{through_child:?}")
    };
    assert_eq!(error, ChargeError::NoSuchCard);
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_typed_error_is_json_in_the_recorded_text() {
    let (store, client) = store().await;
    let runtime =
        Runtime::builder(store).activity::<charge>().orchestration::<order>().build().await.unwrap();
    client.start_and_wait::<order>("poor", "poor".to_owned()).await.unwrap().unwrap();
    let history = client.read_execution_history("poor", 1).await.unwrap();
    let failed = history.iter().find_map(|event| match &event.kind {
        EventKind::ActivityFailed { details } => Some(details.display_message()),
        _ => None,
    });
    assert_eq!(failed.unwrap(), r#"{"Declined":{"left":3}}"#);
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_panic_of_an_activity_or_orchestration_is_its_own_error() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .activity::<charge>()
        .orchestration::<order>()
        .orchestration::<clumsy>()
        .build()
        .await
        .unwrap();
    let activity = client.start_and_wait::<order>("a", "broken".to_owned()).await.unwrap().unwrap_err();
    let panicked = OrderError::Charge(CallError::Panicked("the card reader burns".to_owned()));
    assert_eq!(activity, CallError::Failed(panicked));
    let orchestration = client.start_and_wait::<clumsy>("o", ()).await.unwrap();
    assert_eq!(orchestration, Err(CallError::Panicked("oops".to_owned())));
    runtime.shutdown(None).await;
}

#[duroxide::orchestration]
async fn clumsy(_ctx: OrchestrationContext) -> Result<(), String> {
    panic!("oops")
}

/// An activity that another program runs: with handlers of texts.
#[duroxide::activity]
async fn remote(ctx: ActivityContext, n: u32) -> Result<u32, ChargeError>;

#[duroxide::orchestration]
async fn asks(ctx: OrchestrationContext, n: u32) -> Result<u32, CallError<ChargeError>> {
    ctx.activity::<remote>(n).await
}

#[tokio::test]
async fn texts_of_handlers_by_name_are_kept_and_their_json_is_read() {
    let (store, client) = store().await;
    let by_name = ActivityRegistry::builder()
        .register("remote", |_, input| async move {
            match input.as_str() {
                "1" => Ok("41".to_owned()),
                "2" => Err("just a text".to_owned()),
                "3" => Err(r#"{"Declined":{"left":1}}"#.to_owned()),
                "4" => Err(not_retryable("\"NoSuchCard\"")),
                _ => Ok("not a number".to_owned()),
            }
        })
        .build();
    let runtime = Runtime::builder(store).activities(by_name).orchestration::<asks>().build().await.unwrap();
    let result = async |n: u32| {
        let ended = client.start_and_wait::<asks>(format!("asks-{n}"), n).await.unwrap();
        ended.map_err(|error| match error {
            CallError::Failed(error) => error,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(result(1).await, Ok(41));
    assert_eq!(result(2).await, Err(CallError::Untyped("just a text".to_owned())));
    assert_eq!(result(3).await, Err(CallError::Failed(ChargeError::Declined { left: 1 })));
    assert_eq!(result(4).await, Err(CallError::Failed(ChargeError::NoSuchCard)));
    let error = result(5).await.unwrap_err();
    assert!(matches!(error, CallError::Decode(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "output of activity 'remote' (instance 'asks-5', orchestration 'asks' 1.0.0) is not the JSON of u32: expected \
         ident at line 1 column 2 (12 bytes)"
    );
    runtime.shutdown(None).await;
}

/// An orchestration whose activity is poisoned fails itself, so the client gets the error.
#[tokio::test]
async fn poison_reaches_the_client() {
    let (store, client) = store().await;
    let options = RuntimeOptions { max_attempts: 1, ..crate::fixture::quick_options() };
    let runtime = Runtime::builder(store).orchestration::<asks>().options(options).build().await.unwrap();
    let error = client.start_and_wait::<asks>("asks", 1).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Poisoned(ErrorDetails::Poison { max_attempts: 1, .. })), "{error:?}");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn an_input_that_cannot_be_read_is_not_tried_again() {
    let (store, client) = store().await;
    let caller = OrchestrationRegistry::builder()
        .register("Caller", |ctx, _| async move {
            ctx.schedule_activity_with_retry("charge", "not json", RetryPolicy::new(5)).await
        })
        .build();
    let runtime = Runtime::builder(store)
        .activity::<charge>()
        .orchestration::<order>()
        .orchestrations(caller)
        .build()
        .await
        .unwrap();
    client.start_orchestration("caller", "Caller", "").await.unwrap();
    let status = crate::fixture::ended(&client, "caller").await;
    let text = crate::fixture::failure(status).display_message();
    assert_eq!(
        text,
        "[not retryable] undecodable input: input of activity 'charge' (instance 'caller') is not the JSON of \
         alloc::string::String: expected ident at line 1 column 2 (8 bytes)"
    );
    client.start_orchestration("order", "order", "teapot").await.unwrap();
    let result = client.handle::<order>("order").result().await.unwrap();
    assert!(matches!(result, Err(CallError::Decode(_))), "{result:?}");
    runtime.shutdown(None).await;
}

#[duroxide::orchestration]
async fn patient(ctx: OrchestrationContext) -> Result<String, String> {
    Ok(ctx.event::<String>("never").await?)
}

#[duroxide::orchestration]
async fn watches(ctx: OrchestrationContext) -> Result<(), CallError<String>> {
    ctx.child::<patient>(()).id("patient").await.map(drop)
}

#[tokio::test]
async fn a_cancelled_child_is_its_own_error() {
    let (store, client) = store().await;
    let runtime =
        Runtime::builder(store).orchestration::<patient>().orchestration::<watches>().build().await.unwrap();
    let parent = client.start::<watches>("w", ()).await.unwrap();
    let child = client.handle::<patient>("patient");
    let waits =
        async || client.read_execution_history("patient", 1).await.is_ok_and(|history| history.len() > 1);
    crate::fixture::until("the child waits", waits).await;
    child.cancel("enough").await.unwrap();
    let cancelled = || CallError::Cancelled { reason: "enough".to_owned() };
    assert_eq!(child.result().await.unwrap(), Err(cancelled()));
    assert_eq!(parent.result().await.unwrap(), Err(CallError::Failed(cancelled())));
    runtime.shutdown(None).await;
}
