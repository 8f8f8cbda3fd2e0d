//! Registers activities. They have only one version.

use std::{future::Future, sync::Arc};

use duroxide_core::{SYSCALL_ACTIVITY_PREFIX, codec};
use serde::{Serialize, de::DeserializeOwned};

use super::{ActivityRegistry, ActivityRegistryBuilder, DEFAULT_VERSION};
use crate::{ActivityContext, ActivityHandler, FnActivity};

// The bounds on `F` are repeated on each method, because only there do they let the compiler infer a closure's
// parameter types.
impl ActivityRegistryBuilder {
    /// Registers an activity.
    #[must_use]
    pub fn register<F, Fut>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.add(&name.into(), Arc::new(FnActivity(handler)));
        self
    }

    /// Registers an activity with typed input and output.
    ///
    /// A value whose JSON is a string is written as the bare text; see [`codec`](duroxide_core::codec) for what that loses.
    #[must_use]
    pub fn register_typed<In, Out, F, Fut>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send,
        F: Fn(ActivityContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let texts = move |ctx: ActivityContext, input: String| {
            let handler = handler.clone();
            async move {
                let input = codec::decode_at(&input, || {
                    format!("input of activity '{}' (instance '{}')", ctx.activity_name(), ctx.instance_id())
                })?;
                let output = handler(ctx, input).await?;
                codec::encode(&output)
            }
        };
        self.add(&name.into(), Arc::new(FnActivity(texts)));
        self
    }

    /// Adds all activities of another registry.
    #[must_use]
    pub fn merge(self, other: ActivityRegistry) -> Self {
        self.merge_registry(other, "activity")
    }

    /// Registers many activities of one type.
    #[must_use]
    pub fn register_all<F, Fut>(self, handlers: Vec<(&str, F)>) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(handlers, |builder, name, handler| builder.register(name, handler))
    }

    /// A builder that starts with the activities of `registry`.
    #[deprecated(note = "use `ActivityRegistry::builder_from`")]
    pub fn from_registry(registry: &ActivityRegistry) -> Self {
        ActivityRegistry::builder_from(registry)
    }

    pub(crate) fn add(&mut self, name: &str, handler: Arc<dyn ActivityHandler>) {
        if name.starts_with(SYSCALL_ACTIVITY_PREFIX) {
            self.refuse(format!("activity name '{name}' uses reserved prefix '{SYSCALL_ACTIVITY_PREFIX}'"));
            return;
        }
        self.insert(name, DEFAULT_VERSION, handler, |at| format!("duplicate activity registration: {at}"));
    }
}
