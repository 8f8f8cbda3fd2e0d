//! The key-value store of an instance: changes of the current execution are stored separately and merged when it ends.

use std::collections::{BTreeMap, HashMap};

use duroxide_core::{Event, KvEntry};
use duroxide_provider::{PruneOptions, Round};

use super::deletion::family;
use crate::{
    factory::ProviderFactory,
    fixture::Fixture,
    message::raised,
    round::{completion, continuation, failure, first_round, kv_all_cleared, kv_cleared, kv_set, turn_round},
};

/// An instance `i` whose first turn made these changes.
async fn with_changes<F: ProviderFactory + ?Sized>(factory: &F, changes: Vec<Event>) -> Fixture {
    let fixture = Fixture::new(factory).await;
    let mut round = first_round("i");
    round.history_delta.extend(changes);
    fixture.running_with("i", round).await;
    fixture
}

/// An instance `i` whose first execution left `a` = `1` and `b` = `2`, and whose second execution runs.
async fn with_earlier_execution<F: ProviderFactory + ?Sized>(factory: &F) -> Fixture {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "a", "1"), kv_set("i", 1, 3, "b", "2")]).await;
    fixture.continue_as_new("i", 1, 4).await;
    fixture
}

/// Commits a turn of `i` with these changes.
async fn change(fixture: &Fixture, execution_id: u64, changes: Vec<Event>) {
    fixture.turn("i", turn_round(execution_id, changes)).await;
}

async fn value(fixture: &Fixture, instance: &str, key: &str) -> Option<String> {
    fixture.provider.get_kv_value(instance, key).await.expect("get_kv_value must work")
}

/// All keys and values of an instance, as a client sees them.
async fn values(fixture: &Fixture, instance: &str) -> BTreeMap<String, String> {
    let values = fixture.provider.get_kv_all_values(instance).await.expect("get_kv_all_values must work");
    values.into_iter().collect()
}

fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The key-value snapshot that a fetch of `i` returns. Abandons the claim.
async fn snapshot(fixture: &Fixture) -> BTreeMap<String, String> {
    entries(fixture).await.into_iter().map(|(key, entry)| (key, entry.value)).collect()
}

async fn entries(fixture: &Fixture) -> HashMap<String, KvEntry> {
    fixture.send(raised("i", "look")).await;
    let claim = fixture.claim_instance("i").await;
    let entries = claim.item.kv_snapshot.clone();
    let execution_id = claim.item.execution_id;
    fixture.commit(&claim, turn_round(execution_id, vec![])).await;
    entries
}

async fn prune_all(fixture: &Fixture) {
    let pruned = fixture.admin().prune_executions("i", PruneOptions::default()).await;
    pruned.expect("prune_executions must work");
}

/// A key that was set can be read (11.1).
pub async fn test_kv_set_and_get<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "key", "value")]).await;
    assert_eq!(value(&fixture, "i", "key").await.as_deref(), Some("value"));
    assert_eq!(values(&fixture, "i").await, map([("key", "value")]));
}

/// The last set of a key counts, within a round and over rounds (11.1).
pub async fn test_kv_overwrite<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture =
        with_changes(factory, vec![kv_set("i", 1, 2, "key", "1"), kv_set("i", 1, 3, "key", "2")]).await;
    assert_eq!(values(&fixture, "i").await, map([("key", "2")]));
    change(&fixture, 1, vec![kv_set("i", 1, 4, "key", "3")]).await;
    assert_eq!(values(&fixture, "i").await, map([("key", "3")]));
}

/// A cleared key is removed, the others stay (11.1).
pub async fn test_kv_clear_single<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "a", "1"), kv_set("i", 1, 3, "b", "2")]).await;
    change(&fixture, 1, vec![kv_cleared("i", 1, 4, "a")]).await;
    assert_eq!(values(&fixture, "i").await, map([("b", "2")]));
}

/// Clearing all removes every key (11.1).
pub async fn test_kv_clear_all<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "a", "1"), kv_set("i", 1, 3, "b", "2")]).await;
    change(&fixture, 1, vec![kv_all_cleared("i", 1, 4)]).await;
    assert_eq!(values(&fixture, "i").await, map([]));
}

/// A key that was never set has no value (A11).
pub async fn test_kv_get_nonexistent<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![]).await;
    assert_eq!(value(&fixture, "i", "key").await, None);
}

/// A fetch returns the key-values that earlier executions left, with the recorded times (11.2, 11.3).
pub async fn test_kv_snapshot_in_fetch<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    let entries = entries(&fixture).await;
    assert_eq!(entries.len(), 2, "two keys were left: {entries:?}");
    assert_eq!(entries["a"], KvEntry { value: "1".to_owned(), last_updated_at_ms: 2_000 });
    assert_eq!(entries["b"], KvEntry { value: "2".to_owned(), last_updated_at_ms: 3_000 });
}

/// A key cleared by an execution that ended is not in later snapshots (11.2).
pub async fn test_kv_snapshot_after_clear_single<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_cleared("i", 2, 2, "a")]).await;
    fixture.continue_as_new("i", 2, 3).await;
    assert_eq!(snapshot(&fixture).await, map([("b", "2")]));
}

/// After a clear-all by an execution that ended, later snapshots are empty (11.2).
pub async fn test_kv_snapshot_after_clear_all<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_all_cleared("i", 2, 2)]).await;
    fixture.continue_as_new("i", 2, 3).await;
    assert_eq!(snapshot(&fixture).await, map([]));
}

/// Keys belong to the instance: each execution adds to the keys of the executions before (11.2).
pub async fn test_kv_execution_id_tracking<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "first", "1")]).await;
    fixture.continue_as_new("i", 1, 3).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "second", "2")]).await;
    fixture.continue_as_new("i", 2, 3).await;
    change(&fixture, 3, vec![kv_set("i", 3, 2, "third", "3")]).await;
    assert_eq!(values(&fixture, "i").await, map([("first", "1"), ("second", "2"), ("third", "3")]));
    assert_eq!(snapshot(&fixture).await, map([("first", "1"), ("second", "2")]));
}

/// A later execution overwrites a key of an earlier one (11.2).
pub async fn test_kv_cross_execution_overwrite<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "a", "new")]).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "new"), ("b", "2")]));
    fixture.continue_as_new("i", 2, 3).await;
    assert_eq!(snapshot(&fixture).await, map([("a", "new"), ("b", "2")]));
}

/// A key removed in one execution can be set again in the next (11.2).
pub async fn test_kv_cross_execution_remove_readd<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_cleared("i", 2, 2, "a")]).await;
    fixture.continue_as_new("i", 2, 3).await;
    change(&fixture, 3, vec![kv_set("i", 3, 2, "a", "again")]).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "again"), ("b", "2")]));
}

/// Pruning an execution does not restore a value that a later execution has overwritten (11.5).
pub async fn test_kv_prune_preserves_overwritten<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "a", "new")]).await;
    prune_all(&fixture).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "new"), ("b", "2")]));
}

/// Pruning executions removes no key (11.5).
pub async fn test_kv_prune_preserves_all_keys<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    prune_all(&fixture).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "1"), ("b", "2")]));
    assert_eq!(snapshot(&fixture).await, map([("a", "1"), ("b", "2")]));
}

/// Instances do not share keys (11.1).
pub async fn test_kv_instance_isolation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "key", "mine")]).await;
    let mut round = first_round("other");
    round.history_delta.push(kv_set("other", 1, 2, "key", "theirs"));
    fixture.running_with("other", round).await;
    assert_eq!(value(&fixture, "i", "key").await.as_deref(), Some("mine"));
    assert_eq!(value(&fixture, "other", "key").await.as_deref(), Some("theirs"));
}

/// Deleting an instance deletes its keys (11.5, 19.1).
pub async fn test_kv_delete_instance_cascades<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    fixture.admin().delete_instance("i", true).await.expect("force must delete it");
    assert_eq!(values(&fixture, "i").await, map([]));
    fixture.running("i").await;
    assert_eq!(snapshot(&fixture).await, map([]), "a new instance of the same id must start without keys");
}

/// Clearing a key that is not there is no error (11.1).
pub async fn test_kv_clear_nonexistent_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "a", "1")]).await;
    change(&fixture, 1, vec![kv_cleared("i", 1, 3, "unknown")]).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "1")]));
}

/// An unknown instance has no keys (A11).
pub async fn test_kv_get_unknown_instance<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    assert_eq!(value(&fixture, "unknown", "key").await, None);
    assert_eq!(values(&fixture, "unknown").await, map([]));
}

/// A key can be set after a clear and after a clear-all, also in the same round (11.1).
pub async fn test_kv_set_after_clear<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "a", "1"), kv_set("i", 1, 3, "b", "2")]).await;
    let changes = vec![
        kv_cleared("i", 1, 4, "a"),
        kv_set("i", 1, 5, "a", "after clear"),
        kv_all_cleared("i", 1, 6),
        kv_set("i", 1, 7, "b", "after clear-all"),
    ];
    change(&fixture, 1, changes).await;
    assert_eq!(values(&fixture, "i").await, map([("b", "after clear-all")]));
}

/// An empty value is a value (11.1).
pub async fn test_kv_empty_value<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "empty", "")]).await;
    assert_eq!(value(&fixture, "i", "empty").await.as_deref(), Some(""));
}

/// A value of the largest allowed size is stored whole (A7).
pub async fn test_kv_large_value<F: ProviderFactory + ?Sized>(factory: &F) {
    let large = "x".repeat(duroxide_core::limits::MAX_KV_VALUE_BYTES);
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "large", &large)]).await;
    let stored = value(&fixture, "i", "large").await.expect("the key was set");
    assert!(stored == large, "a value of {} bytes came back with {} bytes", large.len(), stored.len());
}

/// A key is any text (11.1).
pub async fn test_kv_special_chars_in_key<F: ProviderFactory + ?Sized>(factory: &F) {
    let keys = ["", "with space", "a'b\"c;--", "Ünïcödé ✓", "%_*?", "line\nbreak", "{\"json\":1}"];
    let changes = (2..).zip(keys).map(|(id, key)| kv_set("i", 1, id, key, key)).collect();
    let fixture = with_changes(factory, changes).await;
    for key in keys {
        assert_eq!(value(&fixture, "i", key).await.as_deref(), Some(key), "key {key:?}");
    }
    assert_eq!(values(&fixture, "i").await.len(), keys.len(), "all keys must be kept apart");
}

/// Without keys the snapshot is empty (11.2).
pub async fn test_kv_snapshot_empty<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![]).await;
    assert_eq!(snapshot(&fixture).await, map([]));
}

/// The snapshot spans all executions that ended (11.2).
pub async fn test_kv_snapshot_cross_execution<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "c", "3")]).await;
    fixture.continue_as_new("i", 2, 3).await;
    assert_eq!(snapshot(&fixture).await, map([("a", "1"), ("b", "2"), ("c", "3")]));
}

/// Pruning keeps the changes of the current execution (11.5, 19.3).
pub async fn test_kv_prune_current_execution_protected<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "current", "3"), kv_cleared("i", 2, 3, "a")]).await;
    prune_all(&fixture).await;
    assert_eq!(values(&fixture, "i").await, map([("b", "2"), ("current", "3")]));
}

/// Deleting a tree deletes the keys of all its members (11.5, 19.1).
pub async fn test_kv_delete_instance_with_children<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = Fixture::new(factory).await;
    let members = family(&fixture, "root").await;
    for member in &members {
        fixture.turn(member, turn_round(1, vec![kv_set(member, 1, 2, "key", "value")])).await;
    }
    fixture.admin().delete_instance("root", true).await.expect("force must delete it");
    for member in &members {
        assert_eq!(values(&fixture, member).await, map([]), "the keys of {member} must be deleted");
    }
}

/// Clearing all keys of one instance keeps the keys of others (11.1).
pub async fn test_kv_clear_isolation<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "key", "mine")]).await;
    let mut round = first_round("other");
    round.history_delta.extend([kv_set("other", 1, 2, "key", "theirs"), kv_all_cleared("other", 1, 3)]);
    fixture.running_with("other", round).await;
    assert_eq!(values(&fixture, "other").await, map([]));
    assert_eq!(values(&fixture, "i").await, map([("key", "mine")]));
}

/// Changes of the current execution are not in the snapshot: replay adds them (11.2).
pub async fn test_kv_delta_snapshot_excludes_current_execution<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "a", "new"), kv_cleared("i", 2, 3, "b")]).await;
    assert_eq!(snapshot(&fixture).await, map([("a", "1"), ("b", "2")]));
}

/// Changes of an execution that ended are in the snapshot (11.2).
pub async fn test_kv_delta_snapshot_includes_completed_execution<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "a", "1")]).await;
    assert_eq!(snapshot(&fixture).await, map([]));
    fixture.continue_as_new("i", 1, 3).await;
    assert_eq!(snapshot(&fixture).await, map([("a", "1")]));
}

/// Clients see the earlier state merged with the current changes (11.2).
pub async fn test_kv_delta_client_reads_merged<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "a", "new"), kv_set("i", 2, 3, "c", "3")]).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "new"), ("b", "2"), ("c", "3")]));
    assert_eq!(value(&fixture, "i", "a").await.as_deref(), Some("new"));
    assert_eq!(value(&fixture, "i", "b").await.as_deref(), Some("2"));
}

/// A removal in the current execution hides the earlier value (11.2).
pub async fn test_kv_delta_tombstone_overrides_store<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_cleared("i", 2, 2, "a")]).await;
    assert_eq!(value(&fixture, "i", "a").await, None);
    assert_eq!(values(&fixture, "i").await, map([("b", "2")]));
}

/// A clear-all in the current execution hides all earlier values (11.2).
pub async fn test_kv_delta_clear_all_tombstones_store<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(
        &fixture,
        2,
        vec![kv_set("i", 2, 2, "c", "3"), kv_all_cleared("i", 2, 3), kv_set("i", 2, 4, "d", "4")],
    )
    .await;
    assert_eq!(values(&fixture, "i").await, map([("d", "4")]));
    assert_eq!(value(&fixture, "i", "a").await, None);
    assert_eq!(snapshot(&fixture).await, map([("a", "1"), ("b", "2")]));
}

async fn assert_merged_by<F: ProviderFactory + ?Sized>(factory: &F, end: Round) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "a", "new"), kv_cleared("i", 2, 3, "b")]).await;
    fixture.turn("i", end).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "new")]), "a client must see the same after the end");
    if fixture.provider.as_management_capability().is_some() {
        prune_all(&fixture).await;
        assert_eq!(values(&fixture, "i").await, map([("a", "new")]));
    }
}

/// The changes are merged when the execution completes or fails (11.2).
pub async fn test_kv_delta_merged_on_completion<F: ProviderFactory + ?Sized>(factory: &F) {
    assert_merged_by(factory, completion("i", 2, 4, "done")).await;
    assert_merged_by(factory, failure("i", 2, 4, "broken")).await;
}

/// The changes are merged when the execution continues as new, including those of its last round (11.2).
pub async fn test_kv_delta_merged_on_can<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    change(&fixture, 2, vec![kv_set("i", 2, 2, "a", "new")]).await;
    let mut end = continuation("i", 2, 4);
    end.history_delta.insert(0, kv_cleared("i", 2, 3, "b"));
    fixture.turn("i", end).await;
    let claim = fixture.claim_instance("i").await;
    let merged: BTreeMap<_, _> =
        claim.item.kv_snapshot.into_iter().map(|(key, entry)| (key, entry.value)).collect();
    assert_eq!(merged, map([("a", "new")]), "the start of the next execution must see the merged state");
}

/// Deleting an instance also deletes changes that are not merged yet (11.5, 19.1).
pub async fn test_kv_delta_delete_instance_cascades<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_changes(factory, vec![kv_set("i", 1, 2, "a", "1")]).await;
    fixture.admin().delete_instance("i", true).await.expect("force must delete it");
    assert_eq!(values(&fixture, "i").await, map([]));
}

/// A key that only an old execution set survives the pruning of that execution (11.5).
pub async fn test_kv_delta_prune_untouched_key_survives<F: ProviderFactory + ?Sized>(factory: &F) {
    let fixture = with_earlier_execution(factory).await;
    fixture.continue_as_new("i", 2, 2).await;
    change(&fixture, 3, vec![kv_set("i", 3, 2, "c", "3")]).await;
    prune_all(&fixture).await;
    assert_eq!(values(&fixture, "i").await, map([("a", "1"), ("b", "2"), ("c", "3")]));
    assert_eq!(snapshot(&fixture).await, map([("a", "1"), ("b", "2")]));
}
