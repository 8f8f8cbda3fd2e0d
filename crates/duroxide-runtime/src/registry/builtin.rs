//! Built-in activities: system calls whose results must be recorded.
//!
//! The runtime adds them to the user's registry; they never appear in its `count`.

use std::sync::Arc;

use async_trait::async_trait;
use duroxide_core::{Clock, SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS};
use serde::Deserialize;

use crate::{ActivityContext, ActivityHandler, ActivityRegistry};

/// Random bits for `new_guid`. The environment supplies them, so that a simulator can repeat them.
pub(crate) type RandomBits = Arc<dyn Fn() -> u128 + Send + Sync>;

/// The user's activities together with the built-in ones. Version policies stay shared with `user`.
pub(crate) fn with_builtins(
    user: &ActivityRegistry,
    clock: Arc<dyn Clock>,
    random: RandomBits,
) -> ActivityRegistry {
    user.with_added([
        (SYSCALL_NEW_GUID, Arc::new(NewGuid { random }) as Arc<dyn ActivityHandler>),
        (SYSCALL_UTC_NOW_MS, Arc::new(UtcNowMs { clock })),
        (SYSCALL_GET_KV_VALUE, Arc::new(GetKvValue)),
    ])
}

struct NewGuid {
    random: RandomBits,
}

#[async_trait]
impl ActivityHandler for NewGuid {
    async fn invoke(&self, _ctx: ActivityContext, _input: String) -> Result<String, String> {
        Ok(uuid::Builder::from_random_bytes((self.random)().to_be_bytes()).into_uuid().to_string())
    }
}

struct UtcNowMs {
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl ActivityHandler for UtcNowMs {
    async fn invoke(&self, _ctx: ActivityContext, _input: String) -> Result<String, String> {
        Ok(self.clock.now().as_millis().to_string())
    }
}

/// The input of `get_kv_value`.
#[derive(Debug, Deserialize)]
struct KvAddress {
    instance: String,
    key: String,
}

/// Reads a value of another instance. The result is the JSON of an `Option<String>`, so that a missing key and
/// an empty value differ.
struct GetKvValue;

#[async_trait]
impl ActivityHandler for GetKvValue {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        let address: KvAddress = serde_json::from_str(&input).map_err(|error| error.to_string())?;
        let value = ctx.get_client().get_kv_value(&address.instance, &address.key).await;
        let value = value.map_err(|error| error.to_string())?;
        serde_json::to_string(&value).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use duroxide_core::Timestamp;

    use super::*;
    use crate::{activity_context::tests::charge_on, fixture::FakeStore};

    struct At(u64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0)
        }
    }

    fn registry() -> ActivityRegistry {
        let user = ActivityRegistry::builder().register("Charge", |_, input| async { Ok(input) }).build();
        with_builtins(&user, Arc::new(At(1_234)), Arc::new(|| u128::MAX))
    }

    async fn call(store: Arc<FakeStore>, name: &str, input: &str) -> Result<String, String> {
        let (_, handler) = registry().resolve_handler(name).unwrap();
        handler.invoke(ActivityContext::new(charge_on(store)), input.to_owned()).await
    }

    #[test]
    fn builtins_join_the_users_activities_without_touching_their_registry() {
        let user = ActivityRegistry::builder().register("Charge", |_, input| async { Ok(input) }).build();
        let all = with_builtins(&user, Arc::new(At(0)), Arc::new(|| 0));
        assert_eq!(user.count(), 1);
        assert!(all.has("Charge") && all.has("__duroxide_syscall:new_guid"));
    }

    #[tokio::test]
    async fn new_guid_is_a_hyphenated_random_uuid() {
        let guid = call(FakeStore::silent(), "__duroxide_syscall:new_guid", "").await.unwrap();
        assert_eq!(guid, "ffffffff-ffff-4fff-bfff-ffffffffffff", "version 4, from the given bits");
    }

    #[tokio::test]
    async fn utc_now_is_in_milliseconds() {
        assert_eq!(call(FakeStore::silent(), "__duroxide_syscall:utc_now_ms", "").await.unwrap(), "1234");
    }

    #[tokio::test]
    async fn a_value_of_another_instance_is_read_with_its_absence() {
        let store = FakeStore::silent();
        store.set_kv("stock", "apples", "");
        let read = |key: &str| format!(r#"{{"instance":"stock","key":"{key}"}}"#);
        let name = "__duroxide_syscall:get_kv_value";
        assert_eq!(call(Arc::clone(&store), name, &read("apples")).await.unwrap(), r#""""#);
        assert_eq!(call(Arc::clone(&store), name, &read("pears")).await.unwrap(), "null");
        assert!(call(store, name, "no json").await.is_err());
    }
}
