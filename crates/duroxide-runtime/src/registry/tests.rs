//! Tests of registries: names, versions and errors.

use duroxide_core::OrchestrationContext;
use tracing::Level;

use super::*;
use crate::{
    ActivityContext,
    activity_context::tests::charge_on,
    fixture::{FakeStore, Logs},
};

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

async fn echo(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
    Ok(input)
}

async fn charge(_ctx: ActivityContext, input: String) -> Result<String, String> {
    Ok(input)
}

/// An `Order` in three versions.
fn versioned_orders() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", echo)
        .register_versioned("Order", "1.2.0", echo)
        .register_versioned("Order", "1.10.0", |_ctx, input| async move { Ok(input) })
        .build_result()
        .unwrap()
}

/// 18.1
#[test]
fn without_a_policy_the_latest_version_is_chosen_in_semver_order() {
    let registry = versioned_orders();
    assert_eq!(registry.resolve_version("Order"), Some(version("1.10.0")));
    assert_eq!(
        registry.list_versions("Order"),
        [version("1.0.0"), version("1.2.0"), version("1.10.0")],
        "ascending"
    );
}

/// 18.1
#[test]
fn a_policy_chooses_for_every_clone_from_then_on() {
    let registry = versioned_orders();
    let running = registry.clone();
    registry.set_version_policy("Order", VersionPolicy::Exact(version("1.2.0")));
    assert_eq!(running.resolve_handler("Order").map(|(version, _)| version), Some(version("1.2.0")));
    running.set_version_policy("Order", VersionPolicy::Latest);
    assert_eq!(registry.resolve_version("Order"), Some(version("1.10.0")));
}

#[test]
fn a_policy_for_a_version_that_is_not_there_resolves_to_nothing() {
    let registry = versioned_orders();
    registry.set_version_policy("Order", VersionPolicy::Exact(version("3.0.0")));
    assert!(registry.resolve_handler("Order").is_none());
    assert!(registry.resolve_handler_exact("Order", &version("1.0.0")).is_some(), "still there by version");
}

#[test]
fn exact_lookups_ignore_the_policy() {
    let registry = versioned_orders();
    assert!(registry.resolve_handler_exact("Order", &version("1.2.0")).is_some());
    assert!(registry.resolve_handler_exact("Order", &version("1.3.0")).is_none());
}

#[test]
fn the_builder_sets_policies_and_copies_them() {
    let registry = OrchestrationRegistry::builder_from(&versioned_orders())
        .set_policy("Order", VersionPolicy::Exact(version("1.0.0")))
        .build();
    let copy = OrchestrationRegistry::builder_from(&registry).register("Refund", echo).build();
    assert_eq!(copy.resolve_version("Order"), Some(version("1.0.0")));
    assert_eq!(copy.list_names(), ["Order", "Refund"]);
    assert_eq!((registry.count(), copy.count()), (1, 2));

    copy.set_version_policy("Order", VersionPolicy::Latest);
    assert_eq!(registry.resolve_version("Order"), Some(version("1.0.0")), "a copy has policies of its own");
}

/// A17.5
#[test]
fn a_shared_registry_is_as_good_as_an_owned_one() {
    let shared = Arc::new(versioned_orders());
    let registry: OrchestrationRegistry = Arc::clone(&shared).into();
    shared.set_version_policy("Order", VersionPolicy::Exact(version("1.0.0")));
    assert_eq!(registry.resolve_version("Order"), Some(version("1.0.0")));
}

#[test]
fn duplicates_are_reported_together_and_the_first_stays() {
    let builder = || {
        OrchestrationRegistry::builder()
            .register_versioned("Order", "1.0.0", |_, _| async { Err("first".to_owned()) })
            .register("Order", echo)
            .register_versioned("Order", "2.0.0", echo)
            .register_versioned("Order", "2.0.0", echo)
    };
    assert_eq!(
        builder().build_result().unwrap_err(),
        "duplicate orchestration registration: Order@1.0.0; duplicate orchestration registration: Order@2.0.0"
    );
    assert_eq!(builder().build().list_versions("Order").len(), 2);

    let activities = ActivityRegistry::builder().register("Charge", charge).register("Charge", charge);
    assert_eq!(activities.build_result().unwrap_err(), "duplicate activity registration: Charge@1.0.0");
}

#[test]
fn a_typed_orchestration_that_replaces_an_earlier_one_is_reported() {
    let builder = || {
        OrchestrationRegistry::builder()
            .register_typed::<u32, u32, _, _>("Other", |_ctx, count| async move { Ok(count) })
            .register("Order", echo)
            .register_typed::<u32, u32, _, _>("Order", |_ctx, count| async move { Ok(count + 1) })
    };
    assert_eq!(
        builder().build_result().unwrap_err(),
        "duplicate orchestration registration: Order@1.0.0",
        "like any other registration of a name that exists"
    );
    assert_eq!(builder().build().count(), 2);

    let activities = ActivityRegistry::builder()
        .register("Charge", charge)
        .register_typed::<u32, u32, _, _>("Charge", |_ctx, count| async move { Ok(count) });
    assert_eq!(activities.build_result().unwrap_err(), "duplicate activity registration: Charge@1.0.0");
}

#[test]
#[should_panic(
    expected = "non-monotonic orchestration version for Order: 1.5.0 is not later than existing latest 2.0.0"
)]
fn versions_go_up() {
    let _ = OrchestrationRegistry::builder()
        .register_versioned("Order", "2.0.0", echo)
        .register_versioned("Order", "1.5.0", echo);
}

#[test]
#[should_panic(expected = "version 'two' of orchestration Order is not a semantic version")]
fn versions_are_semantic_versions() {
    let _ = OrchestrationRegistry::builder().register_versioned_typed::<u32, u32, _, _>(
        "Order",
        "two",
        |_ctx, count| async move { Ok(count) },
    );
}

#[test]
fn merging_takes_everything_but_what_is_already_there() {
    let other = OrchestrationRegistry::builder()
        .register("Order", echo)
        .register("Refund", echo)
        .set_policy("Refund", VersionPolicy::Exact(version("1.0.0")))
        .build();
    let builder = || OrchestrationRegistry::builder().register("Order", echo).merge(other.clone());
    assert_eq!(builder().build_result().unwrap_err(), "duplicate orchestration in merge: Order@1.0.0");
    assert_eq!(builder().build().list_names(), ["Order", "Refund"]);

    let activities = ActivityRegistry::builder().register("Charge", charge).build();
    let twice = ActivityRegistry::builder_from(&activities).merge(activities.clone());
    assert_eq!(twice.build_result().unwrap_err(), "duplicate activity in merge: Charge@1.0.0");
    let own_words =
        ActivityRegistry::builder_from(&activities).merge_registry(activities, "plug-in activity");
    assert_eq!(own_words.build_result().unwrap_err(), "duplicate plug-in activity in merge: Charge@1.0.0");
}

#[test]
fn merged_policies_yield_to_those_already_set() {
    let other = versioned_orders();
    other.set_version_policy("Order", VersionPolicy::Exact(version("1.0.0")));
    let taken_over = OrchestrationRegistry::builder().merge(other.clone()).build();
    assert_eq!(taken_over.resolve_version("Order"), Some(version("1.0.0")));
    let kept =
        OrchestrationRegistry::builder().set_policy("Order", VersionPolicy::Latest).merge(other).build();
    assert_eq!(kept.resolve_version("Order"), Some(version("1.10.0")));
}

#[test]
fn many_handlers_of_one_type_are_registered_at_once() {
    let orders =
        OrchestrationRegistry::builder().register_all(vec![("Order", echo), ("Refund", echo)]).build();
    assert_eq!(orders.list_names(), ["Order", "Refund"]);
    let activities = ActivityRegistry::builder().register_all(vec![("Charge", charge)]).build();
    assert!(activities.has("Charge"));
    let later = OrchestrationRegistry::builder()
        .register_all_handlers(vec![("Order", echo)], |builder, name, handler| {
            builder.register_versioned(name, "2.0.0", handler)
        });
    assert_eq!(later.build().list_versions("Order"), [version("2.0.0")]);
}

/// The result of a handler that waits for nothing.
async fn run(registry: &OrchestrationRegistry, name: &str, input: &str) -> Result<String, String> {
    let text = |value: &str| value.to_owned();
    let ctx = OrchestrationContext::new(vec![], 1, text("order-1"), text(name), text("1.0.0"), None);
    registry.resolve_handler(name).unwrap().1.invoke(ctx, input.to_owned()).await
}

#[tokio::test]
async fn typed_orchestrations_take_and_give_values() {
    let registry = OrchestrationRegistry::builder()
        .register_typed("Double", |_ctx, count: u32| async move { Ok(count * 2) })
        .register_typed("Shout", |_ctx, word: String| async move { Ok(word.to_uppercase()) })
        .register_versioned_typed("Fail", "3.0.0", |_ctx, _: ()| async {
            Err::<(), _>("no stock".to_owned())
        })
        .build();
    assert_eq!(run(&registry, "Double", "21").await, Ok("42".to_owned()));
    assert_eq!(run(&registry, "Shout", "bare").await, Ok("BARE".to_owned()), "strings travel bare");
    assert_eq!(run(&registry, "Fail", "null").await, Err("no stock".to_owned()));
    let undecodable = run(&registry, "Double", "many").await.unwrap_err();
    assert_eq!(
        undecodable,
        "input of orchestration 'Double' 1.0.0 (instance 'order-1') does not decode as u32: expected value at line 1 \
         column 1 (4 bytes)"
    );
}

#[tokio::test]
async fn typed_activities_take_and_give_values() {
    let registry = ActivityRegistry::builder()
        .register_typed("Sum", |_ctx, numbers: Vec<u32>| async move { Ok(numbers.iter().sum::<u32>()) })
        .build();
    let (version, handler) = registry.resolve_handler("Sum").unwrap();
    assert_eq!(version, DEFAULT_VERSION);
    let ctx = || ActivityContext::new(charge_on(FakeStore::silent()));
    assert_eq!(handler.invoke(ctx(), "[1,2]".to_owned()).await, Ok("3".to_owned()));
    let undecodable = handler.invoke(ctx(), "{}".to_owned()).await.unwrap_err();
    assert!(
        undecodable.starts_with("input of activity 'Charge' (instance 'order-7') does not"),
        "{undecodable}"
    );
    assert!(undecodable.ends_with("at line 1 column 0 (2 bytes)"), "{undecodable}");
}

#[test]
fn names_of_built_in_activities_are_reserved() {
    let builder = ActivityRegistry::builder().register("__duroxide_syscall:mine", charge);
    let registry = ActivityRegistry::builder().register("__duroxide_syscall:mine", charge).build();
    assert_eq!(
        builder.build_result().unwrap_err(),
        "activity name '__duroxide_syscall:mine' uses reserved prefix '__duroxide_syscall:'"
    );
    assert_eq!(registry.count(), 0);
}

#[test]
#[expect(deprecated, reason = "the older name still works")]
fn the_older_name_of_builder_from_still_works() {
    let registry = ActivityRegistry::builder().register("Charge", charge).build();
    assert!(ActivityRegistryBuilder::from_registry(&registry).build().has("Charge"));
}

#[test]
fn failed_lookups_are_logged_at_debug_level() {
    let (logs, _guard) = Logs::capture();
    assert!(versioned_orders().resolve_handler("Oder").is_none());
    let line = logs.only_line();
    assert_eq!((line.level, line.target.as_str()), (Level::DEBUG, "duroxide::runtime::registry"));
    assert_eq!(line.field_pairs(), [("name", "Oder")]);

    let (logs, _guard) = Logs::capture();
    assert!(versioned_orders().resolve_handler_exact("Order", &version("9.0.0")).is_none());
    assert_eq!(logs.only_line().field_pairs(), [("name", "Order"), ("version", "9.0.0")]);
}
