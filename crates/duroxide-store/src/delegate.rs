//! Implementing the provider traits by handing every call on.

pub use duroxide_provider::{
    Provider, ProviderAdmin, ProviderLayer, impl_provider_admin_by_delegation, impl_provider_for_layer,
};

/// Implements [`Provider`] and [`ProviderAdmin`] for a type that holds a [`StoreProvider`](crate::StoreProvider), or
/// any other provider with management calls, in a field.
///
/// Every method is handed on, those with default bodies too, so nothing that the inner provider does natively is
/// lost. `as_management_capability` is the outer type itself.
///
/// ```
/// use duroxide_provider::Provider;
/// use duroxide_store::{MemoryProvider, impl_provider_by_delegation};
///
/// struct MyProvider {
///     store: MemoryProvider,
/// }
///
/// impl_provider_by_delegation!(MyProvider, store);
///
/// let provider = MyProvider { store: MemoryProvider::new() };
/// assert_eq!(provider.name(), "memory");
/// assert!(provider.as_management_capability().is_some());
/// ```
#[macro_export]
macro_rules! impl_provider_by_delegation {
    ($provider:ty, $store:ident) => {
        impl $crate::delegate::ProviderLayer for $provider {
            fn inner(&self) -> &dyn $crate::delegate::Provider {
                &self.$store
            }

            fn as_management_capability(&self) -> Option<&dyn $crate::delegate::ProviderAdmin> {
                Some(self)
            }
        }

        $crate::delegate::impl_provider_for_layer! { [] $provider }
        $crate::delegate::impl_provider_admin_by_delegation! { $provider, $store }
    };
}
