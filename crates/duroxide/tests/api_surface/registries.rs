//! A3: registries and handlers.

use std::sync::Arc;

use async_trait::async_trait;
use duroxide::{
    ActivityContext, OrchestrationContext, OrchestrationHandler, OrchestrationRegistry,
    OrchestrationRegistryBuilder,
    runtime::{
        ActivityHandler, FnActivity, FnOrchestration, VersionPolicy,
        registry::{self, ActivityRegistry, ActivityRegistryBuilder, Registry, RegistryBuilder},
    },
};
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::bounds;

#[test]
fn aliases_and_policies() {
    bounds::clone::<Registry<dyn OrchestrationHandler>>();
    bounds::default::<Registry<dyn ActivityHandler>>();
    let _: fn(OrchestrationRegistry) -> Registry<dyn OrchestrationHandler> = |registry| registry;
    let _: fn(ActivityRegistry) -> Registry<dyn ActivityHandler> = |registry| registry;
    let _: fn(OrchestrationRegistryBuilder) -> RegistryBuilder<dyn OrchestrationHandler> = |builder| builder;
    let _: fn(ActivityRegistryBuilder) -> RegistryBuilder<dyn ActivityHandler> = |builder| builder;
    let _: fn(registry::VersionPolicy) -> VersionPolicy = |policy| policy;
    bounds::value::<VersionPolicy>();
    let _ = |policy: VersionPolicy| match policy {
        VersionPolicy::Latest => None,
        VersionPolicy::Exact(version) => Some::<Version>(version),
    };
    let shared: Registry<dyn ActivityHandler> = Arc::new(ActivityRegistry::default()).into();
    assert_eq!(shared.count(), 0);
}

fn lookups<H: ?Sized>() {
    let _: fn() -> RegistryBuilder<H> = Registry::builder;
    let _: fn(&Registry<H>) -> RegistryBuilder<H> = Registry::builder_from;
    let _: fn(&Registry<H>, &str) -> Option<(Version, Arc<H>)> = Registry::resolve_handler;
    let _: fn(&Registry<H>, &str) -> Option<Version> = Registry::resolve_version;
    let _: fn(&Registry<H>, &str, &Version) -> Option<Arc<H>> = Registry::resolve_handler_exact;
    let _: fn(&Registry<H>, &str, VersionPolicy) = Registry::set_version_policy;
    let _: fn(&Registry<H>) -> Vec<String> = Registry::list_names;
    let _: fn(&Registry<H>, &str) -> Vec<Version> = Registry::list_versions;
    let _: fn(&Registry<H>, &str) -> bool = Registry::has;
    let _: fn(&Registry<H>) -> usize = Registry::count;
    let _: fn(RegistryBuilder<H>) -> Registry<H> = RegistryBuilder::build;
    let _: fn(RegistryBuilder<H>) -> Result<Registry<H>, String> = RegistryBuilder::build_result;
    let _: fn(RegistryBuilder<H>, Registry<H>, &str) -> RegistryBuilder<H> = RegistryBuilder::merge_registry;
}

#[test]
fn lookups_are_the_same_for_both_kinds() {
    lookups::<dyn OrchestrationHandler>();
    lookups::<dyn ActivityHandler>();
}

#[derive(Clone, Serialize, Deserialize)]
struct Input(u32);

async fn item(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
    Ok(input)
}

async fn typed_item(_ctx: OrchestrationContext, input: Input) -> Result<Input, String> {
    Ok(input)
}

/// Closures need no type annotation, and `async fn` items fit too.
#[test]
fn orchestrations_are_registered_as_closures_and_functions() {
    let other = OrchestrationRegistry::builder().register("other", item).build();
    let registry = OrchestrationRegistry::builder()
        .register("closure", |_ctx, input| async move { Ok(input) })
        .register(String::from("item"), item)
        .register_typed("typed", typed_item)
        .register_typed("typed closure", |_ctx, input: Input| async move { Ok(input.0) })
        .register_versioned("versioned", "1.0.0", |_ctx, input| async move { Ok(input) })
        .register_versioned("versioned", String::from("1.1.0"), item)
        .register_versioned_typed("versioned typed", "2.0.0", typed_item)
        .register_all(vec![("a", item), ("b", item)])
        .register_all_handlers(vec![("c", item)], |builder, name, handler| builder.register(name, handler))
        .merge(other)
        .set_policy("versioned", VersionPolicy::Exact(Version::new(1, 0, 0)))
        .build_result()
        .unwrap();
    assert_eq!(registry.count(), 10);
    assert_eq!(registry.resolve_version("versioned"), Some(Version::new(1, 0, 0)));
}

async fn work(_ctx: ActivityContext, input: String) -> Result<String, String> {
    Ok(input)
}

#[test]
fn activities_are_registered_as_closures_and_functions() {
    let other = ActivityRegistry::builder().register("other", work).build();
    let registry = ActivityRegistry::builder()
        .register("closure", |_ctx, input| async move { Ok(input) })
        .register(String::from("item"), work)
        .register_typed("typed", |_ctx, input: Input| async move { Ok(input) })
        .register_all(vec![("a", work), ("b", work)])
        .register_all_handlers(vec![("c", work)], |builder, name, handler| builder.register(name, handler))
        .merge(other)
        .build();
    assert_eq!(registry.count(), 7);
    #[expect(deprecated, reason = "it must keep compiling")]
    let copy = ActivityRegistryBuilder::from_registry(&registry).build();
    assert_eq!(copy.list_names(), registry.list_names());
}

#[test]
fn error_texts_are_part_of_the_contract() {
    let twice = OrchestrationRegistry::builder().register("o", item).register("o", item).build_result();
    assert_eq!(twice.unwrap_err(), "duplicate orchestration registration: o@1.0.0");
    let twice = ActivityRegistry::builder().register("a", work).register("a", work).build_result();
    assert_eq!(twice.unwrap_err(), "duplicate activity registration: a@1.0.0");
    let other = ActivityRegistry::builder().register("a", work).build();
    let merged = ActivityRegistry::builder().register("a", work).merge(other).build_result();
    assert_eq!(merged.unwrap_err(), "duplicate activity in merge: a@1.0.0");
    let reserved = ActivityRegistry::builder().register("__duroxide_syscall:x", work).build_result();
    assert_eq!(
        reserved.unwrap_err(),
        "activity name '__duroxide_syscall:x' uses reserved prefix '__duroxide_syscall:'"
    );
}

#[test]
#[should_panic(
    expected = "non-monotonic orchestration version for o: 1.0.0 is not later than existing latest 2.0.0"
)]
fn a_version_below_the_latest_panics() {
    let builder = OrchestrationRegistry::builder().register_versioned("o", "2.0.0", item);
    let _ = builder.register_versioned("o", "1.0.0", item);
}

struct Handwritten;

#[async_trait]
impl OrchestrationHandler for Handwritten {
    async fn invoke(&self, _ctx: OrchestrationContext, input: String) -> Result<String, String> {
        Ok(input)
    }
}

#[async_trait]
impl ActivityHandler for Handwritten {
    async fn invoke(&self, _ctx: ActivityContext, input: String) -> Result<String, String> {
        Ok(input)
    }
}

#[test]
fn handlers_are_traits_with_wrappers_for_functions() {
    let _: [Arc<dyn OrchestrationHandler>; 2] = [Arc::new(Handwritten), Arc::new(FnOrchestration(item))];
    let _: [Arc<dyn ActivityHandler>; 2] = [Arc::new(Handwritten), Arc::new(FnActivity(work))];
    bounds::send::<dyn ActivityHandler>();
    bounds::sync::<dyn OrchestrationHandler>();
}
