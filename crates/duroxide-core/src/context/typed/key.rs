//! [`Key`]: a name in the key-value store, with the type of its value.

use std::{fmt, marker::PhantomData};

/// A name in the key-value store of an instance, with the type of its value.
///
/// ```
/// # use duroxide_core::{OrchestrationContext, typed::Key};
/// const STOCK: Key<u32> = Key::new("stock");
///
/// fn sell(ctx: &OrchestrationContext) -> Result<(), String> {
///     let stock = ctx.value(STOCK)?.unwrap_or(10);
///     ctx.set_value(STOCK, &(stock - 1));
///     Ok(())
/// }
/// ```
pub struct Key<T> {
    name: &'static str,
    value: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// The key of this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, value: PhantomData }
    }

    /// The name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}
