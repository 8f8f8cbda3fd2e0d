//! Implements the provider traits for a type by handing every call on to a field.

/// Implements [`Provider`](crate::Provider) and [`ProviderAdmin`](crate::ProviderAdmin) for a type that holds another
/// provider with management calls in a field: `impl_provider_by_delegation!(Type, field)`.
///
/// Every method is handed on, those with default bodies too, so nothing that the inner provider does natively is
/// lost. `as_management_capability` is the outer type itself.
#[macro_export]
macro_rules! impl_provider_by_delegation {
    ($provider:ty, $store:ident) => {
        const _: () = {
            use $crate::signatures::*;

            $crate::provider_methods! { $crate::delegate_provider, ($provider, $store) }
            $crate::provider_admin_methods! { $crate::delegate_provider_admin, ($provider, $store) }
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! delegate_provider {
    (
        ($provider:ty, $store:ident)
        questions { $(fn $question:ident($($given:ident: $of:ty),*) -> $reply:ty;)* }
        $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*
    ) => {
        #[async_trait]
        impl $crate::Provider for $provider {
            $(fn $question(&self $(, $given: $of)*) -> $reply {
                $crate::delegate_provider!(@$question self, $store, $($given),*)
            })*

            $($(async fn $call(&self $(, $argument: $type)*) -> Result<$answer, $crate::ProviderError> {
                $crate::Provider::$call(&self.$store $(, $argument)*).await
            })*)*
        }
    };
    (@as_management_capability $self:ident, $store:ident,) => { Some($self) };
    (@$question:ident $self:ident, $store:ident, $($given:ident),*) => {
        $crate::Provider::$question(&$self.$store $(, $given)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! delegate_provider_admin {
    (
        ($provider:ty, $store:ident)
        $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*
    ) => {
        #[async_trait]
        impl $crate::ProviderAdmin for $provider {
            $($(async fn $call(&self $(, $argument: $type)*) -> Result<$answer, $crate::ProviderError> {
                $crate::ProviderAdmin::$call(&self.$store $(, $argument)*).await
            })*)*
        }
    };
}
