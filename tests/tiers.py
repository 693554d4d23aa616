"""Which tests `make test` leaves to others, by how their places below tests/ begin."""

LONG = (
    # Sparks that others have started, and kills.
    "compat/test_connect.py",
    *(
        f"compat/test_extensions.py::test_{word}"
        for word in ("clients_that_do_not_know_of_it[connect]", "every_kind")
    ),
    "compat/test_extensions.py::test_what_users_of_jdbc_have_declared_is_let_go_once_they_have_left",
    "faults/test_kill.py::test_driver_killed_at_random_moments[plain]",
    "cli/test_cli.py::test_a_select_ends_quietly_when_nobody_reads_its_lines_any_more",
    # Sources and sinks.
    *("delta", "iceberg", "kafka/test_docs_page.py"),
    "kafka/test_joins.py::test_an_idle_partition_holds_nothing_back",
    "kafka/test_records.py::test_broken_records_are_null_dropped_or_fatal[JSON]",
    # The docs, the demo, and who looks on.
    *("examples/test_demo.py", "examples/test_pictures.py::test_page_has", "session/test_docs_pages.py"),
    *(f"notebook/test_magics.py::test_{word}" for word in ("a_query_runs_on", "other_errors")),
    *("web/test_live.py::test_the_page_of_a_real_query", "web/test_run.py::test_the_script_may_follow"),
    "shell/test_piped.py::test_the_examples_of_the_page_run",
    "shell/test_terminal.py::test_a_session_from_the_first_prompt_to_the_last_query",
    # The papers.
    "papers/test_semijoin.py",
    *(f"papers/test_wjoin2002.py::test_{word}" for word in ("baselines", "claims", "joins_with", "tables")),
    # Random statements, and those of each kind.
    "parse/test_fuzz.py::test_statements_of_the_corpus_changed_at_random[10000]",
    "native/test_native.py::test_a_stream_in_micro_batches_gives_the_defined_result_or_is_refused[2]",
    "native/test_native.py::test_a_row_is_late",
    "properties/test_batch.py::test_any_statement_in_batch_gives_the_defined_result[3]",
    "properties/test_streaming.py::test_any_cut_into_micro_batches_gives_the_defined_result[3]",
    *(f"properties/test_theta.py::test_without_a_key[{route}-3" for route in ("psp", "atr", "range")),
    "properties/test_theta.py::test_in_hops[by_hops-3",
    *(f"properties/test_theta.py::test_with_a_hot_key[{route}-2" for route in ("hash", "psp", "skew")),
    "results/test_char.py::test_conditions",
    "results/test_choices.py::test_every_choice_in_batch[chain]",
    *(
        f"results/test_key_kinds.py::test_key_kinds[{kind}]"
        for kind in ("array", "decimal", "double", "string")
    ),
    "results/test_key_kinds.py::test_key_kinds_on_a_stream[integers]",
    *(f"results/test_key_kinds.py::test_{word}" for word in ("nan_equals", "null_keys", "keys_may_be")),
    "results/test_key_kinds.py::test_shapes_of_the_equality_graph[chain of four]",
    "results/test_key_kinds.py::test_shapes_on_a_stream[three classes, triangle]",
    "results/test_predicates.py::test_on_a_stream[two stages]",
    *(f"results/test_predicates.py::test_{word}" for word in ("a_predicate_of_ones_own", "what_fails")),
    # Checkpoints.
    *(f"session/test_checkpoints.py::test_{word}" for word in ("a_changed_window", "other_changes")),
    "session/test_checkpoints.py::test_another_spelling_goes_on[]",
    *(
        f"session/test_failures.py::test_{word}"
        for word in ("a_changed_statement", "what_spark_raises", "what_is_damaged")
    ),
    "stream/test_duplicates.py::test_groups_that_wait",
    *(f"stream/test_groups.py::test_{word}" for word in ("a_silent", "conditions", "what_spark_keeps")),
    *(f"stream/test_groups.py::test_groups_{word}" for word in ("close_as_the_streams_pass_them[two", "of")),
    "stream/test_kept_routes.py::test_the_first_start_chooses_and_later_ones_stay_with_it",
    "stream/test_measured.py::test_the_next_start_plans_with_what_was_measured",
    "stream/test_stored_checkpoints.py::test_every_stored",
    *(
        f"stream/test_stored_checkpoints.py::test_a_stored_checkpoint[{case}]"
        for case in ("1-refused by its state", "2-goes on after a crash")
    ),
    # Sites.
    "sites/test_access.py::test_with",
    *("sites/test_held.py", "sites/test_held_requests.py", "sites/test_requests.py"),
    "sites/test_faults.py::test_connections_are_cut_at_random[SHIP(A = PARTIAL, C = HELD)]",
    "sites/test_joins.py::test_every_way_gives_what_duckdb_finds[PLAN(SEMIJOIN)]",
    *("sites/test_restarts.py::test_killed_while_it_takes_rows_in[json]", "sites/test_sources.py"),
    "sites/test_told.py",
    # Attacks.
    *(
        f"security/test_site_connections.py::test_{word}"
        for word in ("half_sent_requests_take_no_memory_and_keep_nobody_out[known]", "readers_who")
    ),
    "security/test_site_doors.py::test_slow_callers",
    "security/test_site_mutations.py::test_mutated_requests[5]",
    "security/test_site_requests.py::test_json_that_is_large_or_nested[ticket]",
    "security/test_site_requests.py::test_small_bodies_that_unpack_to_gigabytes[numbers-values]",
    # Time and state.
    "stream/test_far_ahead.py::test_a_row_of_the_far_future_is_dropped_and_makes_no_other_late[timestamp-blocks]",
    *(f"stream/test_lateness.py::test_{word}" for word in ("a_row_at_the", "late_rows_are", "rows_without")),
    "stream/test_lateness.py::test_a_restart_keeps_rows_and_watermarks[()]",
    "stream/test_state.py::test_a_slow_stream_holds_back_only_what_waits_for_it",
    "stream/test_starts.py::test_what_was_not_there_in_time",
    "stream/test_static_members.py::test_two_streams_and_a_static_relation",
    "stream/test_theta.py::test_without_a_key[DBEAC-ATR]",
)
"""Of what takes minutes a case of each kind: `make long`, which CI runs."""

THOROUGH = (
    # The others of what takes minutes.
    *("faults", "compat", "delta", "iceberg", "kafka", "native", "papers"),
    *("examples/test_demo.py", "examples/test_pictures.py"),
    *("properties/test_batch.py", "properties/test_streaming.py", "properties/test_theta.py"),
    "properties/test_values.py::test_many",
    *("results/test_char.py", "results/test_choices.py", "results/test_key_kinds.py"),
    "results/test_predicates.py",
    *("session/test_checkpoints.py", "session/test_class_archive.py", "session/test_computed_columns.py"),
    *("notebook/test_flights.py", "notebook/test_lab.py", "notebook/test_magics.py", "notebook/test_page.py"),
    "session/test_docs_pages.py",
    *(
        f"results/test_tables_without_time.py::test_the_result_is_that_of_spark[{case}]"
        for case in ("one equality", "links two streams", "each row", "two tables, one a subquery")
    ),
    "results/test_lateral_views.py::test_the_result_is_that_of_spark[behind]",
    *("session/test_failures.py", "session/test_spark_process.py"),
    *("shell/test_piped.py", "shell/test_terminal.py"),
    *(f"security/test_site_{kind}.py" for kind in ("connections", "mutations", "requests")),
    *(
        f"security/test_site_doors.py::test_{word}"
        for word in ("consumers_of", "metrics", "records", "slow_callers", "what_a_site_keeps")
    ),
    *("sites/test_access.py", "sites/test_faults.py", "sites/test_held.py", "sites/test_held_joins.py"),
    *("sites/test_held_requests.py", "sites/test_joins.py", "sites/test_killed.py"),
    *("sites/test_requests.py", "sites/test_restarts.py", "sites/test_sources.py", "sites/test_told.py"),
    *(
        "stream/test_starts.py",
        "stream/test_copied_checkpoints.py",
        "stream/test_far_ahead.py",
        "stream/test_kept_routes.py",
    ),
    *(
        f"stream/test_groups.py::test_groups_close_as_the_streams_pass_them[{case}]"
        for case in ("no key", "or", "path", "later")
    ),
    *("stream/test_large_slices.py", "stream/test_lateness.py", "stream/test_measured.py"),
    "stream/test_repartition.py",
    *("stream/test_sequences.py", "stream/test_state.py", "stream/test_static_members.py"),
    *("stream/test_stored_checkpoints.py", "stream/test_theta.py", "stream/test_watermarked_inputs.py"),
    *("web/test_live.py", "web/test_run.py"),
    "cli/test_cli.py::test_a_checkpoint_is_repartitioned_whole_or_not_at_all",
    "cli/test_cli.py::test_a_failure_while_running_ends_with_status_1_and_its_place",
    "cli/test_cli.py::test_runs_until_stopped_and_stops_cleanly",
    "cli/test_cli.py::test_streaming_select_prints_its_rows",
    "cli/test_cli.py::test_once_runs_everything_and_a_second_run_adds_nothing",
    *("examples/test_examples.py::test_command_line", "sites/test_kept.py"),
    "parse/test_fuzz.py::test_statements_of_the_corpus_changed_at_random",
    # Of the fast tests what others test, too.
    "cli/test_cli.py::test_explain_without_a_window_join_shows_spark_s_plan",
    *(f"cli/test_printed.py::test_a_stream_is_printed_once[{rows}]" for rows in (3, 1000)),
    "cli/test_printed.py::test_many_rows_are_printed_in_pages[100]",
    "cli/test_printed.py::test_a_stream_as_lines[json-False]",
    "stream/test_skew.py::test_a_query_that_has_begun_without_goes_on_so",
    "stream/test_skew.py::test_the_rows_of_the_most_frequent_key_are_shared_out[STRING]",
    "cost/test_model.py::test_results_comparisons_and_state_are_as_expected[near of a key]",
    "cost/test_calibrate.py::test_the_runs_compare_as_many_pairs_as_they_say[nlw-20000]",
    *(
        f"cost/test_windows.py::test_results_of_windows_of_any_ratio_are_as_many_as_expected[{case}"
        for case in (*(f"{seed}-1" for seed in (5, 8, 13, *range(17, 40))), "0-4", "7-4", "9-4")
    ),
    *(
        f"cost/test_calls.py::test_calls_are_as_expected_and_the_plan_with_few_is_chosen[{case}]"
        for case in ("0.1-True", "0.5-False")
    ),
    *(
        f"plans/test_growth.py::test_work_grows_as_the_statement_does[{kind}"
        for kind in (
            "columns w",
            "comparisons",
            "expressions",
            "filters",
            "one",
            "bands",
            "values",
            "windows",
        )
    ),
    "web/test_page.py::test_with_reduced_motion_numbers_change_seldom",
    "session/test_queries.py::test_two_queries_into_a_sink_have_names_of_their_own",
    "session/test_sinks.py::test_group_by_a_streams_own_time[query1",
    *(
        f"session/test_analyze_order.py::test_disorder_of_files_is_that_of_their_rows_as_they_arrive[{case}"
        for case in ("many small files-csv", "many small files-json", "large files in splits-csv")
    ),
    "sites/test_other_times.py",
    "sites/test_links.py",
    *(f"shell/test_shown.py::test_a_plan_fits_into_any_terminal[hops-{width}]" for width in (60, 200)),
    *(
        f"results/test_window_forms.py::test_forms_over_many_streams_on_a_stream[{form}]"
        for form in ("form 3", "path in both directions", "or inside and")
    ),
    *(
        f"results/test_window_forms.py::test_bounds_on_a_stream[{form}]"
        for form in ("asymmetric, ahead", "or of separate terms", "directed")
    ),
    "stream/test_match_time_types.py::test_match_time_streams_for_every_event_time[id",
    "stream/test_filters.py::test_nothing_of_a_row_is_evaluated_that_a_filter_removes[A.k <> 0]",
    "plans/test_hops.py::test_a_checkpoint_goes_on_with_its_stages_on_any_number_of_cores[hops ]",
)
"""All else, but for what LONG has: `make thorough`."""
