"""What the tests share: a Spark session in each process, wjoin sessions on it, and the order of the tests."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from pyspark.sql import SparkSession

import wjoin
from tests.programs import find_jars
from wjoin.catalog import catalog_of

_HERE = Path(__file__).parent
# Tests in these folders run on Spark.
_ON_SPARK = {"results", "spark", "stream", "faults", "compat", "delta", "iceberg", "kafka"}
# These take minutes: folders and files below tests/ that `make test` leaves to `make long`.
_LONG = (
    *("faults", "compat", "delta", "iceberg", "kafka", "native", "papers"),
    *("examples/test_demo.py", "examples/test_pictures.py"),
    *("properties/test_batch.py", "properties/test_streaming.py", "properties/test_theta.py"),
    *("results/test_choices.py", "results/test_key_kinds.py", "results/test_predicates.py"),
    *("session/test_checkpoints.py", "session/test_class_archive.py", "session/test_computed_columns.py"),
    *("notebook/test_flights.py", "notebook/test_lab.py", "notebook/test_magics.py", "notebook/test_page.py"),
    "session/test_docs_pages.py",
    *("session/test_failures.py", "session/test_spark_process.py"),
    *("shell/test_piped.py", "shell/test_terminal.py"),
    *("sites/test_access.py", "sites/test_faults.py", "sites/test_held.py", "sites/test_held_joins.py"),
    *("sites/test_held_requests.py", "sites/test_joins.py", "sites/test_killed.py"),
    *("sites/test_requests.py", "sites/test_restarts.py", "sites/test_sources.py", "sites/test_told.py"),
    *("stream/test_copied_checkpoints.py", "stream/test_far_ahead.py", "stream/test_kept_routes.py"),
    *("stream/test_large_slices.py", "stream/test_lateness.py", "stream/test_measured.py"),
    "stream/test_repartition.py",
    *("stream/test_sequences.py", "stream/test_state.py", "stream/test_static_members.py"),
    *("stream/test_stored_checkpoints.py", "stream/test_theta.py", "stream/test_watermarked_inputs.py"),
    *("web/test_live.py", "web/test_run.py"),
)
# Of what others test, too, or of one case of many: `make thorough` runs these, `make long` does not.
_THOROUGH = (
    "cli/test_cli.py::test_a_checkpoint_is_repartitioned_whole_or_not_at_all",
    "cli/test_cli.py::test_runs_until_stopped_and_stops_cleanly[2]",
    *(f"results/test_choices.py::test_choices_on_a_stream[{case}]" for case in ("bands", "chain", "path")),
    "results/test_choices.py::test_choices_on_a_stream[overlap]",
    "results/test_predicates.py::test_on_a_stream[three",
    "results/test_predicates.py::test_on_a_stream[two with more]",
    "faults/test_kill.py::test_python_workers_killed_and_their_tasks_retried[plain-state-read]",
    "stream/test_repartition.py::test_queries_go_on_with_other_partitions[nested",
    "stream/test_repartition.py::test_queries_go_on_with_other_partitions[alone",
    "stream/test_repartition.py::test_a_stage_that_no_row_has_reached_moves_empty",
    "stream/test_theta.py::test_without_a_key[CADB",
    *(f"stream/test_theta.py::test_without_a_key[BAC-{word}]" for word in ("ATR", "CTR")),
    *(f"stream/test_theta.py::test_on_more_workers_than_cores[{word}]" for word in ("ATR", "CTR")),
    "stream/test_copied_checkpoints.py::test_a_query_goes_on_without_its_local_copies[truncated]",
    "stream/test_copied_checkpoints.py::test_a_query_goes_on_without_its_local_copies[deleted]",
    "stream/test_copied_checkpoints.py::test_a_query_goes_on_without_its_local_copies[a file",
    "session/test_class_archive.py::test_an_archive_with_other_classes_in_front_is_left_alone",
    "session/test_class_archive.py::test_an_archive_that_has_been_cut_off_is_left_alone",
    "session/test_spark_process.py::test_a_streaming_join_says_nothing_but_its_rows[None]",
    *(
        f"properties/test_streaming.py::test_any_cut_into_micro_batches_gives_the_defined_result[{n}]"
        for n in (4, 5)
    ),
    "properties/test_batch.py::test_any_statement_in_batch_gives_the_defined_result[5]",
    *(f"native/test_native.py::test_any_statement_in_batch_gives_the_defined_result[{n}]" for n in (4, 5)),
    *(
        f"native/test_native.py::test_a_stream_in_micro_batches_gives_the_defined_result_or_is_refused[{n}]"
        for n in (3, 4)
    ),
    # Ways of asking that tests/compat/test_extensions.py takes, too.
    "compat/test_same_everywhere.py::test_twenty_statements_have_the_same_answers[in_pyspark_without_enable]",
    "compat/test_same_everywhere.py::test_twenty_statements_have_the_same_answers[in_spark_sql]",
    # One statement on a stream has all these keys at once.
    "native/test_native.py::test_a_key_of_each_kind_in_batch",
    *(f"results/test_key_kinds.py::test_key_kinds_on_a_stream[{kind}]" for kind in ("floats", "upper")),
    "results/test_key_kinds.py::test_shapes_on_a_stream[two classes, chain]",
    "results/test_choices.py::test_choices_on_a_stream[band]",
    *(f"shell/test_terminal.py::test_one_leaves_while_spark_starts[{how}]" for how in ("quit", "SIGHUP")),
    "stream/test_far_ahead.py::test_a_declared_limit_from_python[timestamp_ntz",
    *(
        f"stream/test_lateness.py::test_a_row_is_kept_to_the_last_instant_at_which_it_can_be_joined[{case}]"
        for case in ("stored before-A-3", "stored before-B-0", "arriving after-A-0", "arriving after-B-3")
    ),
    "stream/test_lateness.py::test_a_restart_keeps_rows_and_watermarks[(1,)]",
    # Each route has three streams that meet by it, or five.
    *(f"stream/test_theta.py::test_without_a_key[DBEAC-{word}]" for word in ("single", "PSP")),
    "stream/test_theta.py::test_in_hops[hops -CADB",
    "stream/test_theta.py::test_in_hops[at once -CADB",
    "stream/test_repartition.py::test_queries_go_on_with_other_partitions[atr",
    "stream/test_repartition.py::test_hops_are_chosen_and_stay_in_hops[hops-",
    # The fast tests have these choices in one process, and tests/stream/test_theta.py those without a key.
    *(f"results/test_choices.py::test_choices_on_a_stream[{case}]" for case in ("cascade", "theta")),
    # The example of tests/kafka/test_demo.py is a script of the command line, too.
    "kafka/test_joins.py::test_twenty_thousand_records_on_the_command_line",
    "stream/test_state.py::test_state_follows_the_window_over_fifty_windows",
    "stream/test_state.py::test_retention_of_each_stream_is_that_of_the_completed_graph[missing pair]",
    "stream/test_state.py::test_retention_of_each_stream_is_that_of_the_completed_graph[directed path]",
    "stream/test_measured.py::test_what_cannot_be_read_is_told_and_the_one_before_is_used",
    "stream/test_far_ahead.py::test_any_times_on_a_stream[native]",
    "stream/test_watermarked_inputs.py::test_a_deduplicated_stream_is_joined_and_aggregated_by_match_time[False]",
    # Others of their kind go the same ways.
    "kafka/test_refusals.py::test_without_avro",
    "kafka/test_records.py::test_broken_records_are_null_dropped_or_fatal[CSV]",
    "compat/test_same_everywhere.py::test_twenty_statements_have_the_same_answers[by_connect]",
    "compat/test_notebook.py",
    "cli/test_cli.py::test_a_failure_while_running_ends_with_status_1_and_its_place",
    "stream/test_repartition.py::test_another_number_of_slices_and_another_route",
    *(
        f"results/test_choices.py::test_every_choice_in_batch[{case}]"
        for case in ("path", "overlap", "bands")
    ),
    # Routes of four streams do what those of five do.
    *(f"properties/test_theta.py::test_without_a_key[{word}-5" for word in ("ctr", "range")),
    # Of the ways to travel from sites one has them all.
    *(
        f"sites/test_held_joins.py::test_rows_that_are_asked_for_give_what_duckdb_finds[{key}]"
        for key in ("big", "noon")
    ),
    *(f"sites/test_held_joins.py::test_three_streams[{case}]" for case in ("first", "second stage")),
    "sites/test_joins.py::test_streams_of_four_sites_of_which_one_begins_again[0",
    "sites/test_joins.py::test_streams_of_four_sites_of_which_one_begins_again[1",
    "sites/test_faults.py::test_connections_are_cut_at_random[PLAN(SIMPLE)]",
    "sites/test_killed.py::test_query_and_site_killed_together[PLAN(SEMIJOIN)]",
    "web/test_run.py::test_a_script_that_fails_shows_its_error_to_whoever_looks",
    *(
        f"examples/test_pictures.py::test_every_route_finds_what_numpy_finds[{word}]"
        for word in ("ATR", "CTR")
    ),
    # What only whole machines show, and what CI itself does (`wjoin prepare`).
    "notebook/test_lab.py::test_no_live_cell_outlives_its_kernel_and_the_query_goes_on_in_the_next",
    "session/test_class_archive.py",
    # Each part of these has a test of its own.
    *("kafka/test_connect.py", "kafka/test_demo.py", "kafka/test_extension.py"),
    "properties/test_theta.py::test_without_a_key[psp-5",
    "properties/test_theta.py::test_without_a_key[ctr-4",
    *(f"properties/test_theta.py::test_in_hops[{word}-4" for word in ("by_one_hop", "by_hops")),
    "sites/test_joins.py::test_streams_of_four_sites_of_which_one_begins_again[2",
    "sites/test_held_joins.py::test_rows_that_are_asked_for_give_what_duckdb_finds[directed]",
    "sites/test_held_joins.py::test_three_streams[last]",
    "sites/test_faults.py::test_connections_are_cut_at_random[PLAN(SEMIJOIN)]",
    "stream/test_repartition.py::test_hops_are_chosen_and_stay_in_hops[once",
    *(f"stream/test_theta.py::test_in_hops[{word} -BAC-" for word in ("hops", "at once")),
    "shell/test_terminal.py::test_a_java_that_is_killed_is_one_clear_line[in a statement]",
    "results/test_predicates.py::test_on_a_stream[two]",
    "results/test_choices.py::test_every_choice_in_batch[cascade]",
    "properties/test_batch.py::test_any_statement_in_batch_gives_the_defined_result[4]",
    "cli/test_cli.py::test_runs_until_stopped_and_stops_cleanly[15]",
    "stream/test_state.py::test_retention_of_each_stream_is_that_of_the_completed_graph[disjunction]",
)
# When they run, after the tests without any of these marks; the first mark counts. Files begin in this order:
# one that takes minutes must not begin last, when the other processes have nothing left to do.
_COSTLY = {"faults": 2, "spark": 3, "slow": 1}

# Much code runs a few times only here: what a thorough compiler of it takes is more than it saves.
_QUICK_START = "-XX:TieredStopAtLevel=1"

hypothesis.settings.register_profile(
    "wjoin",
    deadline=None,  # the first example on Spark takes seconds
    derandomize="CI" in os.environ,  # a red run in CI is then the fault of the change
    print_blob=True,
)
hypothesis.settings.load_profile("wjoin")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the costs that this machine's user has calibrated out of the plans that tests expect.

    And give every JVM, also of processes that tests start, the option of the shared one.
    """
    folder = tempfile.TemporaryDirectory(prefix="wjoin-tests-")
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_CONFIG_HOME"] = folder.name
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _QUICK_START)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=2, help="how often the crash tests kill a query in all")
    parser.addoption("--thorough", action="store_true", help="run the tests marked so, too (`make thorough`)")
    parser.addoption("--backlog", type=int, default=12_000_000, help="rows that wait in the tests of memory")
    parser.addoption("--limit-gb", type=float, default=4.0, help="anonymous memory that these may take")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests by folder and fixture, put those that need Spark last, leave out the thorough ones."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(_THOROUGH):
            item.add_marker(pytest.mark.thorough)
    if not config.getoption("--thorough"):
        thorough = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=thorough)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    for item in items:
        folder = item.path.relative_to(_HERE).parts[0]
        if folder in _ON_SPARK or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if folder == "faults":
            item.add_marker(pytest.mark.faults)
        if item.path.relative_to(_HERE).as_posix().startswith(_LONG):
            item.add_marker(pytest.mark.long)
    items.sort(key=_cost)


def _cost(item: pytest.Item) -> int:
    """Return 0 for a fast test, 1 for a slow one, 2 for one that kills queries, 3 for another on Spark."""
    return next((cost for name, cost in _COSTLY.items() if item.get_closest_marker(name)), 0)


@pytest.fixture(scope="session")
def kills(request: pytest.FixtureRequest) -> int:
    """How often the crash tests kill a running query: 2, or the number given with ``--kills``."""
    return request.config.getoption("--kills")


@pytest.fixture(scope="session")
def backlog(request: pytest.FixtureRequest) -> int:
    """The rows that wait at the first start in the tests of memory: 12,000,000, or those of ``--backlog``."""
    return request.config.getoption("--backlog")


@pytest.fixture(scope="session")
def limit_gb(request: pytest.FixtureRequest) -> float:
    """The anonymous memory that these may take, in GB: 4, or what is given with ``--limit-gb``."""
    return request.config.getoption("--limit-gb")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of all tests of this process, made by wjoin.connect()."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    if (connector := find_jars("--cached")) is not None:
        # A Java process has one class path, and this one serves the tests of Kafka, too.
        settings["spark.driver.extraClassPath"] = f"{connector}/connector/*"
    session = wjoin.connect(**settings).spark
    yield session
    session.stop()


@pytest.fixture
def session(spark: SparkSession) -> Iterator["wjoin.Session"]:
    """A new wjoin session on the shared Spark; what the test leaves behind there is removed after it."""
    before = spark.conf.getAll
    yield wjoin.connect(spark)
    for query in spark.streams.active:
        query.stop()
    wjoin.disable(spark)
    declared = catalog_of(spark)
    for names in (declared.streams, declared.sinks, declared.statistics, declared.warned):
        names.clear()
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    _restore_settings(spark, before)


def _restore_settings(spark: SparkSession, before: dict[str, str]) -> None:
    now = spark.conf.getAll
    for key in now.keys() - before.keys():
        spark.conf.unset(key)
    for key, value in before.items():
        if now.get(key) != value:
            spark.conf.set(key, value)


@pytest.fixture
def only_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Wait until no other process of the tests has a server of Spark Connect: all listen at the same port."""
    with (tmp_path_factory.getbasetemp().parent / "spark-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
