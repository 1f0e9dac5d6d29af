//! Names the cases of [`crate::cases`] once, and makes a test of each for a store.

/// `conformance!(module, constructor)`: every case against stores that the async constructor makes.
macro_rules! conformance {
    ($store:ident, $make:path) => {
        mod $store {
            crate::conformance::conformance!(@cases $make:
                b18_sequences_have_no_gaps_under_concurrency
                b18_every_digest_follows_from_its_predecessor
                b24_attempts_count_the_started_facts_of_a_tool_call
                b24_duplicate_invocation_is_refused_and_writes_nothing
                tool_call_of_another_tool_is_refused
                invocation_of_another_tool_call_is_refused
                facts_follow_the_lifecycle
                facts_of_the_system_and_of_calls_do_not_mix
                entry_without_facts_is_refused
                p06_conflict_does_not_fail_its_neighbours
                outcome_is_appended_once
                lookup_tells_attempts_tool_and_invocation
                repeat_of_a_refusal_tells_the_place_that_the_first_answer_told
                runs_of_other_tenants_do_not_meet
                undecided_lists_what_a_crash_cut
                p04_numbers_belong_to_content_and_rise
                p04_content_that_returns_gets_a_new_number_once_a_higher_one_ran
                p04_hook_numbers_rise_with_every_change
                last_activation_is_each_sidecars_own
                g20_pages_walk_all_facts_without_gap_or_repeat
                g21_filters_hold_together_for_one_entry
                g22_unknown_run_is_none
                b17_tool_call_tells_its_latest_attempt
                b17_tool_calls_come_in_the_order_of_their_first_attempts
                health_is_serving_until_closed
                closed_store_refuses_appends
            );
        }
    };
    (@cases $make:path: $($case:ident)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let kept = $make().await;
            crate::cases::$case(&kept.journal).await;
            tollgate_domain::Store::close(&*kept.journal).await;
        }
    )+};
}

pub(crate) use conformance;
