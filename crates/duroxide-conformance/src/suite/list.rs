/// Calls a macro with the list of all validations: `(argument) place topic { name, … } …`, where the place says whether
/// the topic's functions are public at the root of `provider_validations` or in a module of the topic's name.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_validation {
    ($callback:path $(, $argument:expr)?) => {
        $callback! {
            ($($argument)?)
            root atomicity {
                test_atomicity_failure_rollback,
                test_multi_operation_atomic_ack,
                test_lock_released_only_on_successful_ack,
                test_concurrent_ack_prevention,
                test_cancelled_activities_are_part_of_the_round,
            }
            root error_handling {
                test_invalid_lock_token_on_ack,
                test_duplicate_event_id_rejection,
                test_missing_instance_metadata,
                test_corrupted_serialization_data,
                test_lock_expiration_during_ack,
                test_read_corrupted_history_returns_error,
                test_read_with_execution_corrupted_history_returns_error,
            }
            root instance_creation {
                test_instance_creation_via_metadata,
                test_no_instance_creation_on_enqueue,
                test_null_version_handling,
                test_sub_orchestration_instance_creation,
            }
            root instance_locking {
                test_exclusive_instance_lock,
                test_lock_token_uniqueness,
                test_invalid_lock_token_rejection,
                test_concurrent_instance_fetching,
                test_completions_arriving_during_lock_blocked,
                test_cross_instance_lock_isolation,
                test_message_tagging_during_lock,
                test_ack_only_affects_locked_messages,
                test_multi_threaded_lock_contention,
                test_multi_threaded_no_duplicate_processing,
                test_multi_threaded_lock_expiration_recovery,
            }
            root lock_expiration {
                test_lock_expires_after_timeout,
                test_abandon_releases_lock_immediately,
                test_lock_renewal_on_ack,
                test_concurrent_lock_attempts_respect_expiration,
                test_worker_lock_renewal_success,
                test_worker_lock_renewal_invalid_token,
                test_worker_lock_renewal_after_expiration,
                test_worker_lock_renewal_extends_timeout,
                test_worker_lock_renewal_after_ack,
                test_abandon_work_item_releases_lock,
                test_abandon_work_item_with_delay,
                test_worker_ack_fails_after_lock_expiry,
                test_orchestration_lock_renewal_after_expiration,
            }
            root multi_execution {
                test_execution_isolation,
                test_latest_execution_detection,
                test_execution_id_sequencing,
                test_continue_as_new_creates_new_execution,
                test_execution_history_persistence,
            }
            root queue_semantics {
                test_worker_queue_fifo_ordering,
                test_worker_peek_lock_semantics,
                test_worker_ack_atomicity,
                test_timer_delayed_visibility,
                test_lost_lock_token_handling,
                test_worker_item_immediate_visibility,
                test_worker_delayed_visibility_skips_future_items,
                test_orphan_queue_messages_dropped,
                test_hidden_start_is_waited_for,
            }
            root management {
                test_list_instances,
                test_list_instances_by_status,
                test_list_executions,
                test_get_instance_info,
                test_get_execution_info,
                test_get_system_metrics,
                test_get_queue_depths,
                test_get_instance_stats_nonexistent,
                test_get_instance_stats_history,
                test_get_instance_stats_kv,
                test_get_instance_stats_carry_forward,
                test_get_instance_stats_kv_delta_only,
                test_get_instance_stats_kv_merged,
            }
            root cancellation {
                test_fetch_returns_running_state_for_active_orchestration,
                test_fetch_returns_terminal_state_when_orchestration_completed,
                test_fetch_returns_terminal_state_when_orchestration_failed,
                test_fetch_returns_terminal_state_when_orchestration_continued_as_new,
                test_fetch_returns_missing_state_when_instance_deleted,
                test_renew_returns_running_when_orchestration_active,
                test_renew_returns_terminal_when_orchestration_completed,
                test_renew_returns_missing_when_instance_deleted,
                test_ack_work_item_none_deletes_without_enqueue,
                test_cancelled_activities_deleted_from_worker_queue,
                test_ack_work_item_fails_when_entry_deleted,
                test_renew_fails_when_entry_deleted,
                test_cancelling_nonexistent_activities_is_idempotent,
                test_batch_cancellation_deletes_multiple_activities,
                test_same_activity_in_worker_items_and_cancelled_is_noop,
                test_orphan_activity_after_instance_force_deletion,
            }
            module long_polling {
                test_short_poll_returns_immediately,
                test_long_poll_waits_for_timeout,
                test_fetch_respects_timeout_upper_bound,
                test_short_poll_work_item_returns_immediately,
                test_long_poll_work_item_waits_for_timeout,
                test_long_poll_returns_when_a_message_arrives,
                test_long_poll_work_item_returns_when_an_activity_arrives,
                test_long_poll_returns_when_a_timer_is_due,
                test_long_poll_returns_when_a_lease_ends,
                test_dropped_fetch_locks_nothing,
            }
            module poison_message {
                orchestration_ignore_attempt_preserves_hidden_start,
                orchestration_delayed_abandon_preserves_unlocked_rows,
                orchestration_attempt_count_starts_at_one,
                orchestration_attempt_count_increments_on_refetch,
                worker_attempt_count_starts_at_one,
                worker_attempt_count_increments_on_lock_expiry,
                attempt_count_is_per_message,
                abandon_work_item_ignore_attempt_decrements,
                abandon_orchestration_item_ignore_attempt_decrements,
                ignore_attempt_never_goes_negative,
                max_attempt_count_across_message_batch,
            }
            module deletion {
                test_delete_terminal_instances,
                test_delete_running_rejected_force_succeeds,
                test_delete_nonexistent_instance,
                test_delete_cleans_queues_and_locks,
                test_cascade_delete_hierarchy,
                test_force_delete_prevents_ack_recreation,
                test_list_children,
                test_delete_get_parent_id,
                test_delete_get_instance_tree,
                test_delete_instances_atomic,
                test_delete_instances_atomic_force,
                test_delete_instances_atomic_orphan_detection,
                test_stale_activity_after_delete_recreate,
            }
            module bulk_deletion {
                test_delete_instance_bulk_filter_combinations,
                test_delete_instance_bulk_safety_and_limits,
                test_delete_instance_bulk_completed_before_filter,
                test_delete_instance_bulk_cascades_to_children,
            }
            module prune {
                test_prune_options_combinations,
                test_prune_safety,
                test_prune_bulk,
                test_prune_bulk_includes_running_instances,
            }
            module capability_filtering {
                test_fetch_with_filter_none_returns_any_item,
                test_fetch_with_compatible_filter_returns_item,
                test_fetch_with_incompatible_filter_skips_item,
                test_fetch_filter_skips_incompatible_selects_compatible,
                test_fetch_filter_does_not_lock_skipped_instances,
                test_fetch_filter_null_pinned_version_always_compatible,
                test_fetch_filter_boundary_versions,
                test_pinned_version_stored_via_ack_metadata,
                test_pinned_version_immutable_across_ack_cycles,
                test_continue_as_new_execution_gets_own_pinned_version,
                test_filter_with_empty_supported_versions_returns_nothing,
                test_concurrent_filtered_fetch_no_double_lock,
                test_fetch_filter_applied_before_history_deserialization,
                test_fetch_single_range_only_uses_first_range,
                test_ack_stores_pinned_version_via_metadata_update,
                test_provider_updates_pinned_version_when_told,
                test_fetch_corrupted_history_filtered_vs_unfiltered,
                test_fetch_deserialization_error_increments_attempt_count,
                test_fetch_deserialization_error_eventually_reaches_poison,
                test_ack_appends_event_to_corrupted_history,
            }
        }
    };
}
