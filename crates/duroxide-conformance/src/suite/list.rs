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
        }
    };
}
