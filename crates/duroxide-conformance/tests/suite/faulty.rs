//! Tests that the suite finds faults: for each broken rule, the validations that must fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use duroxide_conformance::provider_validations::check;

use crate::{MemoryFactory, fault::BrokenRule};

/// Asserts that a provider with this fault fails these validations, given as `topic::name`.
fn caught_by(fault: BrokenRule, validations: &[&str]) {
    let passed: Vec<&&str> = validations
        .iter()
        .filter(|validation| {
            let (topic, name) = validation.split_once("::").expect("validations are named topic::name");
            let factory = MemoryFactory::faulty(fault);
            catch_unwind(AssertUnwindSafe(|| check(topic, name, &factory))).is_ok()
        })
        .collect();
    assert!(passed.is_empty(), "a provider that {fault:?} passed {passed:?}");
}

macro_rules! faults {
    ($($test:ident: $fault:ident is caught by [$($validation:literal),* $(,)?];)*) => {
        $(#[test]
        fn $test() {
            caught_by(BrokenRule::$fault, &[$($validation),*]);
        })*
    };
}

faults! {
    ignoring_the_version_filter: IgnoresVersionFilter is caught by [
        "capability_filtering::test_fetch_with_incompatible_filter_skips_item",
        "capability_filtering::test_fetch_filter_skips_incompatible_selects_compatible",
        "capability_filtering::test_fetch_filter_does_not_lock_skipped_instances",
        "capability_filtering::test_fetch_filter_boundary_versions",
        "capability_filtering::test_filter_with_empty_supported_versions_returns_nothing",
        "capability_filtering::test_fetch_filter_applied_before_history_deserialization",
        "capability_filtering::test_fetch_corrupted_history_filtered_vs_unfiltered",
    ];
    using_the_first_range_only: UsesFirstRangeOnly is caught by [
        "capability_filtering::test_fetch_single_range_only_uses_first_range",
    ];
    forgetting_pins: ForgetsPins is caught by [
        "capability_filtering::test_pinned_version_stored_via_ack_metadata",
        "capability_filtering::test_pinned_version_immutable_across_ack_cycles",
        "capability_filtering::test_continue_as_new_execution_gets_own_pinned_version",
        "capability_filtering::test_ack_stores_pinned_version_via_metadata_update",
        "capability_filtering::test_provider_updates_pinned_version_when_told",
        "rounds::test_commit_round_pins_next_execution",
    ];
    forgetting_attempts: ForgetsAttempts is caught by [
        "poison_message::orchestration_attempt_count_increments_on_refetch",
        "poison_message::worker_attempt_count_increments_on_lock_expiry",
        "poison_message::max_attempt_count_across_message_batch",
        "capability_filtering::test_fetch_deserialization_error_increments_attempt_count",
    ];
    keeping_attempts_that_were_taken_back: KeepsIgnoredAttempts is caught by [
        "poison_message::abandon_work_item_ignore_attempt_decrements",
        "poison_message::abandon_orchestration_item_ignore_attempt_decrements",
        "poison_message::orchestration_ignore_attempt_preserves_hidden_start",
        "poison_message::ignore_attempt_never_goes_negative",
        "sessions::test_abandoned_session_item_ignore_attempt",
    ];
    ignoring_the_delay_of_an_abandon: IgnoresAbandonDelay is caught by [
        "lock_expiration::test_abandon_work_item_with_delay",
        "queue_semantics::test_worker_delayed_visibility_skips_future_items",
        "poison_message::orchestration_delayed_abandon_preserves_unlocked_rows",
    ];
    ending_leases_early: EndsLeasesEarly is caught by [
        "lock_expiration::test_lock_expires_after_timeout",
        "queue_semantics::test_lost_lock_token_handling",
        "long_polling::test_long_poll_returns_when_a_lease_ends",
    ];
    accepting_what_comes_after_the_lease: AcceptsAfterLease is caught by [
        "error_handling::test_lock_expiration_during_ack",
        "lock_expiration::test_worker_lock_renewal_after_expiration",
        "lock_expiration::test_worker_ack_fails_after_lock_expiry",
        "lock_expiration::test_orchestration_lock_renewal_after_expiration",
        "sessions::test_renew_session_lock_after_expiry_returns_zero",
    ];
    repeating_tokens: RepeatsTokens is caught by [
        "instance_locking::test_lock_token_uniqueness",
        "instance_locking::test_multi_threaded_lock_expiration_recovery",
        "lock_expiration::test_lock_expires_after_timeout",
        "lock_expiration::test_abandon_work_item_releases_lock",
        "queue_semantics::test_lost_lock_token_handling",
    ];
    committing_half_of_a_refused_round: CommitsHalfOfARefusedRound is caught by [
        "atomicity::test_atomicity_failure_rollback",
        "rounds::test_commit_round_rolls_back_at_every_step",
        "deletion::test_force_delete_prevents_ack_recreation",
    ];
    accepting_stored_event_ids: AcceptsStoredEventIds is caught by [
        "atomicity::test_atomicity_failure_rollback",
        "atomicity::test_lock_released_only_on_successful_ack",
        "error_handling::test_duplicate_event_id_rejection",
    ];
    skipping_events_that_cannot_be_decoded: SkipsUndecodableEvents is caught by [
        "error_handling::test_corrupted_serialization_data",
        "error_handling::test_read_corrupted_history_returns_error",
        "error_handling::test_read_with_execution_corrupted_history_returns_error",
        "capability_filtering::test_fetch_corrupted_history_filtered_vs_unfiltered",
    ];
    keeping_cancelled_activities: KeepsCancelledActivities is caught by [
        "cancellation::test_cancelled_activities_deleted_from_worker_queue",
        "cancellation::test_ack_work_item_fails_when_entry_deleted",
        "cancellation::test_renew_fails_when_entry_deleted",
        "cancellation::test_batch_cancellation_deletes_multiple_activities",
        "cancellation::test_same_activity_in_worker_items_and_cancelled_is_noop",
        "cancellation::test_renew_returns_terminal_when_orchestration_completed",
    ];
    keeping_cancelled_timers: KeepsCancelledTimers is caught by [
        "rounds::test_commit_round_deletes_cancelled_timers",
        "rounds::test_commit_round_timer_created_and_cancelled",
    ];
    forgetting_the_next_execution: ForgetsNextExecution is caught by [
        "rounds::test_commit_round_with_next_execution",
        "rounds::test_commit_round_applies_state_of_both_executions",
    ];
    forgetting_keys: ForgetsKeys is caught by [
        "idempotent_enqueue::test_activity_results_have_a_key",
        "idempotent_enqueue::test_timers_have_a_key",
        "idempotent_enqueue::test_child_results_have_a_key",
        "idempotent_enqueue::test_child_starts_have_a_key",
        "idempotent_enqueue::test_continue_as_new_has_a_key",
        "idempotent_enqueue::test_wake_ups_have_a_key",
        "idempotent_enqueue::test_keys_hold_for_every_way_in",
    ];
    losing_state_changes: LosesStateChanges is caught by [
        "custom_status::test_custom_status_set",
        "custom_status::test_custom_status_clear",
        "kv_store::test_kv_set_and_get",
        "kv_store::test_kv_snapshot_in_fetch",
        "kv_store::test_kv_delta_merged_on_can",
        "management::test_get_instance_stats_kv",
        "status::test_status_shows_custom_status",
    ];
    losing_messages_of_a_round: LosesRoundMessages is caught by [
        "atomicity::test_multi_operation_atomic_ack",
    ];
    losing_results_of_activities: LosesActivityResults is caught by [
        "queue_semantics::test_worker_ack_atomicity",
    ];
    ignoring_tags: IgnoresTags is caught by [
        "tag_filtering::test_default_only_fetches_untagged",
        "tag_filtering::test_tags_fetches_only_matching",
        "tag_filtering::test_none_filter_returns_nothing",
        "tag_filtering::test_tag_survives_abandon_and_refetch",
        "tag_filtering::test_multi_runtime_tag_isolation",
    ];
    ignoring_owners_of_sessions: IgnoresSessionOwners is caught by [
        "sessions::test_session_affinity_blocks_other_worker",
        "sessions::test_concurrent_session_claim_only_one_wins",
        "sessions::test_session_takeover_after_lock_expiry",
    ];
    ignoring_handlers: IgnoresHandlers is caught by [
        "handler_capability::test_starts_without_handler_are_held_back",
        "handler_capability::test_executions_without_handler_are_held_back",
        "handler_capability::test_activities_without_handler_are_held_back",
    ];
    deleting_running_instances: DeletesRunningInstances is caught by [
        "deletion::test_delete_running_rejected_force_succeeds",
        "deletion::test_delete_instances_atomic",
    ];
}
