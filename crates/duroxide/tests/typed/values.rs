//! Every value comes back as it went.

use std::collections::BTreeMap;

use duroxide::prelude::*;
use serde::{Deserialize, Serialize};

use super::store;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    text: String,
    maybe: Option<String>,
    untagged: Vec<Untagged>,
    map: BTreeMap<u8, ()>,
}

#[duroxide::activity]
async fn echo(_ctx: ActivityContext, value: Everything) -> Result<Everything, Everything> {
    if value.maybe.is_none() { Err(value) } else { Ok(value) }
}

impl std::fmt::Display for Everything {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

#[duroxide::orchestration]
async fn there_and_back(ctx: OrchestrationContext, value: Everything) -> Result<Everything, Everything> {
    match ctx.activity::<echo>(value).await {
        Ok(value) | Err(CallError::Failed(value)) => {
            if value.maybe.is_none() {
                Err(value)
            } else {
                Ok(value)
            }
        }
        Err(other) => panic!("{other}"),
    }
}

#[duroxide::orchestration]
async fn text(ctx: OrchestrationContext, value: String) -> Result<Option<String>, String> {
    let event = ctx.event::<Option<String>>("event").await?;
    assert_eq!(event.as_deref(), Some("null"));
    Ok(Some(value))
}

#[tokio::test]
async fn values_that_bare_texts_would_change_come_back_as_they_went() {
    let (store, client) = store().await;
    let runtime = Runtime::builder(store)
        .activity::<echo>()
        .orchestration::<there_and_back>()
        .orchestration::<text>()
        .build()
        .await
        .unwrap();
    let mut value = Everything {
        text: "\"quoted\"".to_owned(),
        maybe: Some("null".to_owned()),
        untagged: vec![Untagged::Text("7".to_owned()), Untagged::Number(7), Untagged::Text(String::new())],
        map: BTreeMap::from([(3, ())]),
    };
    let came_back = client.start_and_wait::<there_and_back>("ok", value.clone()).await.unwrap();
    assert_eq!(came_back, Ok(value.clone()));
    value.maybe = None;
    let came_back = client.start_and_wait::<there_and_back>("err", value.clone()).await.unwrap();
    assert_eq!(came_back, Err(CallError::Failed(value)));

    for (n, value) in ["7", "null", "\"quoted\"", "", "{}"].into_iter().enumerate() {
        let id = format!("text-{n}");
        let handle = client.start::<text>(id.as_str(), value.to_owned()).await.unwrap();
        crate::fixture::recorded(&client, &id, |event| {
            matches!(event.kind, EventKind::ExternalSubscribed { .. })
        })
        .await;
        handle.raise("event", &Some("null")).await.unwrap();
        assert_eq!(handle.result().await.unwrap(), Ok(Some(value.to_owned())), "{value}");
    }
    runtime.shutdown(None).await;
}
