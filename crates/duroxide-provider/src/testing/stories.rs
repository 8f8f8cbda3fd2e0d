//! Short stories that every store engine must pass.
//!
//! A story takes a fresh [`Scenario`](super::Scenario) and panics if the engine does something else. The engine has
//! the default options: orphans wait 60 s.

pub mod activities;
pub mod admin;
pub mod dead_letters;
pub mod early_turns;
pub mod filters;
pub mod inspection;
pub mod locks;
pub mod mailbox;
pub mod nodes;
pub mod reads;
pub mod rounds;
pub mod sessions;

/// Makes a test of every story. The expression is evaluated for each, and gives a fresh, empty engine with default
/// options.
#[macro_export]
macro_rules! engine_stories {
    ($engine:expr) => {
        $crate::engine_stories! { @topics $engine;
            mailbox: [
                messages_come_in_the_order_in_which_they_became_visible,
                an_abandon_with_delay_changes_no_order,
                a_clock_set_back_changes_no_order_of_immediate_messages,
                a_timer_is_invisible_until_it_is_due,
                a_delayed_message_is_invisible_until_its_time,
                a_clock_set_back_hides_no_immediate_message,
                the_instance_that_waits_longest_is_claimed_first,
                an_instance_with_messages_left_after_a_commit_goes_to_the_back,
                an_instance_with_messages_left_after_a_late_commit_goes_to_the_back,
                a_stray_message_does_not_block_and_joins_a_later_start,
                a_stray_that_is_started_goes_to_the_back,
                messages_wait_for_a_hidden_start,
                stray_queue_messages_become_dead_letters_at_the_next_claim,
                queue_messages_among_other_messages_wait_for_the_start,
                a_batch_is_bounded_in_messages_and_takes_a_start_from_any_place,
                a_bounded_batch_takes_a_successor_from_any_place,
                a_batch_is_bounded_in_bytes_and_takes_at_least_one,
                a_batch_holds_exactly_so_many_bytes,
                a_queue_message_waits_behind_an_older_hidden_one,
                an_item_with_a_key_is_queued_once,
                a_key_is_free_again_once_its_item_is_consumed,
                items_of_clients_are_never_deduplicated,
                a_start_if_new_is_queued_once,
                how_a_pruned_execution_was_started_is_unknown,
                a_full_mailbox_takes_no_more_messages_of_clients,
            ];
            locks: [
                one_instance_is_claimed_once,
                a_message_that_arrives_during_a_turn_stays_for_the_next,
                an_ended_lease_gives_the_messages_to_the_next_and_fences_the_first,
                a_commit_handed_in_before_the_lease_ended_is_served,
                a_commit_after_the_lease_ended_is_refused,
                a_renewal_handed_in_before_the_lease_ended_takes_the_lock_back,
                an_abandon_needs_only_its_token,
                a_renewed_lease_holds,
                an_unknown_token_is_refused,
                attempts_count_fetches_and_are_per_message,
                an_abandon_changes_only_rows_under_its_token,
                a_hidden_message_joins_a_batch_that_is_ready_before_it,
                an_ignored_attempt_is_taken_back_and_never_below_zero,
                a_hidden_start_keeps_its_place_when_others_are_released,
                what_may_be_poison_is_claimed_only_into_free_slots,
                a_healthy_commit_clears_the_suspicion,
                the_engine_wakes_for_leases_timers_and_hidden_rows,
                a_clock_set_back_leaves_no_lease_longer_than_it_is,
                a_clock_set_back_cuts_no_long_lease_short,
                a_clock_set_back_gives_no_ended_lease_new_life,
                a_clock_set_back_moves_no_timer,
                a_clock_set_forward_moves_the_leases_of_its_holders,
                a_step_forward_that_is_noticed_twice_adds_at_most_a_lease,
                a_clock_set_forward_gives_no_ended_lease_new_life,
                a_clock_set_forward_lets_timers_fire,
            ];
            early_turns: [
                the_round_of_an_early_turn_is_part_of_its_transaction,
                an_early_turn_hands_out_work,
                only_a_first_attempt_leads_to_an_early_turn,
                messages_of_clients_do_not_run_early,
                a_mailbox_with_stored_messages_does_not_run_early,
                messages_of_a_round_are_handed_over_after_the_commit,
                an_instance_has_one_round_in_a_transaction,
                a_claim_that_is_not_taken_early_is_handed_over_after_the_commit,
            ];
            rounds: [
                an_instance_runs_from_start_to_end,
                a_round_with_a_known_event_id_changes_nothing,
                a_round_deletes_the_calls_it_cancels_also_its_own,
                cancelling_unknown_work_is_no_error,
                a_round_begins_the_next_execution,
                a_status_of_running_ends_nothing,
                custom_status_counts_deltas,
                key_values_are_merged_when_the_execution_ends,
                a_later_execution_merges_open_changes_of_an_earlier_one,
                a_pin_is_stored_with_its_execution,
                a_mailbox_becomes_an_instance_only_with_name_and_version,
                a_parent_counts_only_at_creation,
                history_without_a_row_makes_an_instance_known,
                appended_events_must_be_new,
                a_commit_after_a_delete_recreates_nothing,
                the_rounds_that_a_client_can_wait_for_are_watched,
            ];
            filters: [
                only_matching_pins_are_claimed_and_others_are_not_touched,
                an_empty_filter_passes_nothing,
                an_execution_without_pin_passes,
                all_ranges_count,
                handlers_are_matched_by_name_and_version,
                a_waiting_successor_is_matched_by_its_own_name_and_version,
                a_successor_whose_start_is_hidden_is_matched_by_its_instance,
                a_start_that_rested_is_matched_again,
            ];
            dead_letters: [
                an_undecodable_message_is_hidden_counted_and_becomes_a_dead_letter,
                an_undecodable_message_does_not_stop_its_batch,
                an_undecodable_start_leaves_the_others_uncounted,
                messages_left_by_a_dead_start_become_dead_letters_with_the_next_claim,
                an_undecodable_activity_is_skipped_and_becomes_a_dead_letter,
                an_undecodable_queue_message_holds_nothing_back,
                orphans_become_dead_letters_after_their_time,
                a_delayed_orphan_becomes_a_dead_letter_after_its_due_time,
                a_retried_activity_goes_back_to_its_queue,
                a_retried_letter_goes_back_uncounted,
                a_discarded_letter_is_gone,
                the_holder_of_an_activity_can_make_it_a_dead_letter,
            ];
            activities: [
                the_lowest_activity_comes_first,
                an_activity_is_queued_once,
                a_stop_ends_an_activity_that_was_not_claimed,
                a_stop_ends_an_activity_that_was_given_back,
                the_holder_of_an_activity_learns_of_a_stop,
                an_activity_whose_lease_ended_keeps_its_stop,
                a_stop_of_a_missing_activity_changes_nothing,
                an_ack_deletes_the_row_and_queues_the_completion,
                an_ack_without_completion_only_deletes,
                an_ended_activity_lease_is_redelivered_and_fenced,
                a_renewed_activity_is_not_redelivered,
                an_abandoned_activity_is_hidden_and_keeps_its_place,
                tags_route_activities,
                handlers_route_activities,
                attempted_activities_are_claimed_only_into_free_slots,
                an_activity_of_an_unknown_instance_is_delivered,
            ];
            sessions: [
                a_session_binds_its_activities_to_one_owner,
                activities_of_a_session_need_a_session_fetch,
                an_ended_session_is_claimed_by_another,
                a_renewed_session_stays_with_its_owner,
                an_idle_session_is_not_renewed,
                renewal_and_ack_keep_a_session_busy,
                clean_up_keeps_sessions_that_are_live_or_needed,
                a_batch_takes_several_activities_of_a_session_it_claims,
                a_clock_set_back_frees_a_session_after_one_lease,
                a_clock_set_back_makes_no_session_busy,
                a_clock_set_forward_leaves_a_session_to_its_owner,
            ];
            nodes: [
                lost_claims_are_counted_apart_from_abandoned_ones,
                claims_of_a_dead_node_are_ready_at_once_each_time,
                the_claim_that_ended_its_node_is_charged_alone,
                other_claims_of_a_node_are_not_charged_once_the_crashing_one_is_known,
                a_node_that_ended_by_an_unknown_claim_leaves_all_counted,
                locks_of_a_dead_node_end_and_count_an_attempt,
                claims_of_a_dead_node_may_be_poison,
                only_live_leases_end_with_a_node,
                a_commit_submitted_before_its_node_ended_is_served,
                the_sessions_of_a_dead_node_are_free,
                one_instance_or_activity_can_be_claimed_past_all_filters,
                a_claim_counts_items_it_has_no_handler_for,
                nodes_are_listed_until_they_end,
                a_node_without_heartbeats_is_forgotten,
                a_node_that_was_ended_by_mistake_gets_its_number_again,
                a_clock_set_forward_makes_no_node_forgotten,
            ];
            admin: [
                a_running_instance_is_deleted_only_by_force,
                a_tree_is_deleted_from_its_root,
                a_large_tree_is_deleted_with_the_first_step,
                a_list_must_hold_all_children,
                calls_that_were_not_carried_out_are_deleted_with_their_parent,
                a_first_turn_of_a_deleted_parents_child_loses_its_lock,
                messages_of_other_senders_to_a_pending_child_stay,
                a_delete_drops_queues_and_dead_letters,
                a_mailbox_in_a_list_is_emptied,
                an_instance_that_waits_for_its_successor_runs,
                bulk_delete_takes_ended_roots_with_their_trees,
                prune_keeps_the_current_and_the_newest,
                prune_compares_the_time_of_the_end,
                bulk_prune_visits_running_instances,
            ];
            reads: [
                a_mailbox_is_invisible,
                a_pending_instance_is_listed_and_has_a_status,
                pages_hold_pending_and_known_instances_in_one_order,
                status_shows_the_end_and_the_custom_status,
                several_are_read_as_each_alone,
                a_reported_end_equals_the_status_that_a_read_returns,
                instances_are_listed_newest_first,
                running_instances_show_their_pins,
                infos_and_counts_agree,
                queue_depths_count_unlocked_rows,
                children_are_listed_in_order,
                stats_show_the_current_execution,
            ];
            inspection: [
                the_queued_work_of_an_instance_is_shown,
                the_handler_that_a_claim_asks_for_is_shown,
                the_holder_of_a_session_is_shown,
                the_activities_and_timers_of_an_instance_are_shown,
                only_the_first_messages_of_a_long_mailbox_are_shown,
                the_dead_letters_of_an_instance_are_shown,
                instances_are_summarized,
                queues_are_summarized,
                an_undecodable_message_is_shown,
            ];
        }
    };
    (@topics $engine:expr; $($topic:ident: [$($story:ident),* $(,)?];)*) => {
        $(
            mod $topic {
                #[allow(unused_imports)]
                use super::*;
                $(
                    #[test]
                    fn $story() {
                        $crate::testing::stories::$topic::$story($crate::testing::Scenario::new($engine));
                    }
                )*
            }
        )*
    };
}
