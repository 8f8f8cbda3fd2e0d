//! Every method of the provider traits, called and noted: to test providers in front of others.

use std::sync::{Mutex, PoisonError};

use crate::signatures::*;

/// Calls every method of a provider once, in the order of the list, and returns their names.
pub async fn call_every_method(provider: &dyn Provider) -> Vec<&'static str> {
    macro_rules! call {
        (
            ()
            questions { $(fn $question:ident($($given:ident: $of:ty),*) -> $reply:ty;)* }
            $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*
        ) => {{
            $(let _ = provider.$question($(<$of>::sample()),*);)*
            $($(let _ = provider.$call($(<$type>::sample()),*).await;)*)*
            vec![$(stringify!($question),)* $($(stringify!($call),)*)*]
        }};
    }
    crate::provider_methods!(call, ())
}

/// Calls every management method once, in the order of the list, and returns their names.
pub async fn call_every_admin_method(admin: &dyn ProviderAdmin) -> Vec<&'static str> {
    macro_rules! call {
        (() $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*) => {{
            $($(let _ = admin.$call($(<$type>::sample()),*).await;)*)*
            vec![$($(stringify!($call),)*)*]
        }};
    }
    crate::provider_admin_methods!(call, ())
}

/// A provider that notes each call under the name of its method and fails it. It implements every method itself, so a
/// call that took a default body on its way shows.
#[derive(Debug, Default)]
pub struct NotingProvider(Mutex<Vec<&'static str>>);

impl NotingProvider {
    /// The names of all calls since the last time this was asked.
    pub fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, method: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(method);
    }

    fn refuse<T>(&self, method: &'static str) -> Result<T, ProviderError> {
        self.note(method);
        Err(ProviderError::permanent(method, "noted"))
    }
}

macro_rules! impl_noting_provider {
    (
        ()
        questions { $(fn $question:ident($($given:ident: $of:ty),*) -> $reply:ty;)* }
        $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*
    ) => {
        #[async_trait]
        impl Provider for NotingProvider {
            $(fn $question(&self $(, _: $of)*) -> $reply {
                self.note(stringify!($question));
                Default::default()
            })*

            $($(async fn $call(&self $(, _: $type)*) -> Result<$answer, ProviderError> {
                self.refuse(stringify!($call))
            })*)*
        }
    };
}

macro_rules! impl_noting_admin {
    (() $($section:ident { $(fn $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*) => {
        #[async_trait]
        impl ProviderAdmin for NotingProvider {
            $($(async fn $call(&self $(, _: $type)*) -> Result<$answer, ProviderError> {
                self.refuse(stringify!($call))
            })*)*
        }
    };
}

crate::provider_methods!(impl_noting_provider, ());
crate::provider_admin_methods!(impl_noting_admin, ());

/// Some value of the type of an argument.
trait Sample {
    fn sample() -> Self;
}

macro_rules! samples {
    ($($type:ty: $value:expr;)*) => {
        $(impl Sample for $type {
            fn sample() -> Self {
                $value
            }
        })*
    };
}

samples! {
    &str: "order";
    &[&str]: &[];
    &[String]: &[];
    bool: true;
    u32: 1;
    u64: 1;
    Duration: Duration::from_secs(1);
    WorkItem: WorkItem::CancelInstance { instance: "order".to_owned(), reason: "enough".to_owned() };
    ExecutionMetadata: Self::default();
    Round: Self::default();
    TagFilter: Self::Any;
    DispatcherCapabilityFilter: Self::default_for_current_build();
    NodeAnnouncement: Self::default();
    OrchestrationFetch<'static>: Self::new(Duration::sample(), Duration::ZERO);
    WorkFetch<'static>: Self::new(Duration::sample(), Duration::ZERO, <&TagFilter>::sample());
    InstanceFilter: Self::default();
    InstanceQuery: Self::default();
    PruneOptions: Self::default();
    SummaryRequest: Self::default();
}

impl<T> Sample for Option<T> {
    fn sample() -> Self {
        None
    }
}

impl<T> Sample for Vec<T> {
    fn sample() -> Self {
        Self::new()
    }
}

/// A few bytes per test stay allocated.
impl<T: Sample> Sample for &T {
    fn sample() -> Self {
        Box::leak(Box::new(T::sample()))
    }
}
