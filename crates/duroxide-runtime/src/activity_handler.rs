//! [`ActivityHandler`]: activity code as a trait object.

use std::{fmt, future::Future};

use async_trait::async_trait;
use duroxide_core::typed::HandlerShapes;

use crate::ActivityContext;

/// Code with side effects. The registry turns closures into handlers; implement this trait for anything else.
///
/// An activity runs at least once: it may run again after a crash or a lost lease, and its result is recorded
/// once.
#[async_trait]
pub trait ActivityHandler: Send + Sync {
    /// Runs the activity.
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String>;

    /// The shapes of input, output and error, if this is a typed handler.
    #[doc(hidden)]
    fn shapes(&self) -> Option<HandlerShapes> {
        None
    }
}

/// Makes a function or closure an [`ActivityHandler`].
pub struct FnActivity<F>(pub F);

impl<F> fmt::Debug for FnActivity<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FnActivity")
    }
}

#[async_trait]
impl<F, Fut> ActivityHandler for FnActivity<F>
where
    F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        (self.0)(ctx, input).await
    }
}
