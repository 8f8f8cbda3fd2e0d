//! Built-in activities: system calls whose results must be recorded.
//!
//! The runtime adds them to the user's registry; they never appear in its `count`.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use duroxide_core::{Clock, SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS};
use serde::{Deserialize, Serialize};

use crate::{ActivityContext, ActivityHandler, ActivityRegistry};

/// Random bits for `new_guid`; the environment supplies them, so that a simulator can repeat them.
pub(crate) type RandomBits = Arc<dyn Fn() -> u128 + Send + Sync>;

/// The user's activities and the built-in ones. Version policies stay shared with `user`.
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
#[derive(Debug, Serialize, Deserialize)]
struct KvAddress {
    instance_id: String,
    key: String,
}

/// Reads a value of another instance. The result is the JSON of an `Option<String>`, so that a missing key and
/// an empty value differ.
struct GetKvValue;

#[async_trait]
impl ActivityHandler for GetKvValue {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        let address: KvAddress = serde_json::from_str(&input).map_err(|error| error.to_string())?;
        let value = ctx.get_client().get_kv_value(&address.instance_id, &address.key).await;
        let value = value.map_err(|error| error.to_string())?;
        serde_json::to_string(&value).map_err(|error| error.to_string())
    }
}

impl fmt::Debug for NewGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewGuid")
    }
}
