//! [`ProviderLayer`]: a provider in front of another one.

use std::future::Future;

use super::methods::signatures::*;

macro_rules! provider_layer {
    (
        ()
        questions { $(fn $question:ident($($given:ident: $of:ty),*) -> $reply:ty;)* }
        $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*
    ) => {
        /// A provider in front of another one. Every method forwards its call, those with default bodies too, so that
        /// native methods of the inner provider are used; a layer overrides the methods that it changes.
        ///
        /// [`impl_provider_for_layer!`](crate::impl_provider_for_layer) makes a [`Provider`] of it.
        #[expect(clippy::too_many_arguments, reason = "the published contract has such a method")]
        pub trait ProviderLayer: Send + Sync {
            /// The provider behind this one.
            fn inner(&self) -> &dyn Provider;

            /// Makes a call of the provider behind this one. Every async method that is not overridden comes through
            /// here, with its name.
            fn around<T: Send>(
                &self,
                method: &'static str,
                call: impl Future<Output = Result<T, ProviderError>> + Send,
            ) -> impl Future<Output = Result<T, ProviderError>> + Send {
                let _ = method;
                call
            }

            $(
                #[doc = concat!("Hands on [`Provider::", stringify!($question), "`].")]
                fn $question(&self $(, $given: $of)*) -> $reply {
                    self.inner().$question($($given),*)
                }
            )*

            $($(
                #[doc = concat!("Hands on [`Provider::", stringify!($call), "`].")]
                fn $call(&self $(, $argument: $type)*)
                    -> impl Future<Output = Result<$answer, ProviderError>> + Send
                {
                    async move { self.around(stringify!($call), self.inner().$call($($argument),*)).await }
                }
            )*)*
        }
    };
}

crate::provider_methods!(provider_layer, ());

/// Implements [`Provider`] for a [`ProviderLayer`]: `impl_provider_for_layer!([generics] Type)`.
#[macro_export]
macro_rules! impl_provider_for_layer {
    ([$($generics:tt)*] $layer:ty) => {
        $crate::provider_methods! { $crate::impl_provider_for_layer, ([$($generics)*] $layer) }
    };
    (
        ([$($generics:tt)*] $layer:ty)
        questions { $(fn $question:ident($($given:ident: $of:ty),*) -> $reply:ty;)* }
        $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*
    ) => {
        const _: () = {
            use $crate::signatures::*;

            #[$crate::signatures::async_trait]
            impl<$($generics)*> $crate::Provider for $layer {
                $(fn $question(&self $(, $given: $of)*) -> $reply {
                    $crate::ProviderLayer::$question(self $(, $given)*)
                })*

                $($(async fn $call(&self $(, $argument: $type)*) -> Result<$answer, $crate::ProviderError> {
                    $crate::ProviderLayer::$call(self $(, $argument)*).await
                })*)*
            }
        };
    };
}
