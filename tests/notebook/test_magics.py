"""``%wjoin`` and ``%%wjoin`` in a real kernel: tables, parameters, errors, running queries as live cells."""

import re
from collections.abc import Iterator

import pytest

from tests.notebook.kernels import Kernel, Output

# The first test starts the kernel, with a Spark of its own.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

VIEWS = """%%wjoin
CREATE OR REPLACE TEMPORARY VIEW camera1 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'), (2, TIMESTAMP '2024-05-01 12:00:02') AS rows(obj_id, ts);
CREATE OR REPLACE TEMPORARY VIEW camera2 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:04'), (2, TIMESTAMP '2024-05-01 12:00:09') AS rows(obj_id, ts)"""
JOIN = "FROM camera1 AS A, camera2 AS B WINDOW (A, B) = {} WHERE A.obj_id = B.obj_id"
STREAMS = """
session = %wjoin --session
for name in ("live1", "live2"):
    rows = session.readStream.format("rate").option("rowsPerSecond", 10).load()
    session.stream(name, rows.selectExpr("value AS obj_id", "timestamp AS ts"), "ts", delay="2 seconds")
"""
LIVE = "SELECT A.obj_id, A.ts FROM live1 AS A, live2 AS B WINDOW = {} WHERE A.obj_id = B.obj_id"
FILES = """
import datetime, json, pathlib
for name in ("door", "badge"):
    pathlib.Path(name).mkdir()
    rows = [{"k": k, "ts": f"2024-05-01T12:00:{k:02}Z"} for k in range(30)]
    (pathlib.Path(name) / "1.json").write_text("\\n".join(map(json.dumps, rows)))
"""
FILE_STREAMS = """%%wjoin
CREATE OR REPLACE STREAM door (k BIGINT, ts TIMESTAMP) USING json OPTIONS (path 'door')
WATERMARK ts DELAY OF INTERVAL 5 SECONDS;
CREATE OR REPLACE STREAM badge (k BIGINT, ts TIMESTAMP) USING json OPTIONS (path 'badge')
WATERMARK ts DELAY OF INTERVAL 5 SECONDS"""
ONCE = "SELECT A.k FROM door AS A, badge AS B WINDOW = 1 SECOND WHERE A.k = B.k"
_ROWS = re.compile(r"micro-batch \d+: [\d,]+ new row")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, jupyter_environment: dict[str, str]) -> Iterator[Kernel]:
    """One kernel with the magics, and a Spark that they have started."""
    started = Kernel(str(tmp_path_factory.mktemp("notebook")), jupyter_environment)
    try:
        good(started.run("%load_ext wjoin"))
        assert good(started.run("import sys; 'pyspark' in sys.modules")).texts() == ["False"]
        shown = good(started.run(VIEWS)).texts()
        assert len(shown) == 1
        assert shown[0].startswith("Started Spark 4.")
        good(started.run(STREAMS))
        good(started.run(FILES))
        good(started.run(FILE_STREAMS))
        yield started
    finally:
        started.close()


def good(output: Output) -> Output:
    assert output.status == "ok", output.error
    return output


def test_a_join_is_shown_as_a_table(kernel: Kernel) -> None:
    output = good(
        kernel.run(f"%%wjoin\nSELECT A.obj_id, A.ts AS at_1, NULL AS `<b>` {JOIN.format('5 SECONDS')}")
    )
    assert output.texts() == [
        " obj_id │ at_1                │ <b>\n"
        "────────┼─────────────────────┼──────\n"
        "      1 │ 2024-05-01 12:00:00 │ NULL\n"
        "1 row"
    ]
    assert '<th class="number">obj_id</th><th>at_1</th><th>&lt;b&gt;</th>' in output.html()
    assert '<td class="number">1</td><td>2024-05-01 12:00:00</td><td><span class="null">NULL' in output.html()


def test_a_long_table_is_cut_and_that_is_said(kernel: Kernel) -> None:
    output = good(kernel.run("%wjoin --limit 2 SELECT id, repeat('x', 600) AS long FROM range(3)"))
    assert output.texts()[0].endswith("the first 2 rows: --limit shows more")
    assert "… (600 characters)" in output.html()


def test_every_kind_of_value_is_shown_as_spark_writes_it(kernel: Kernel) -> None:
    good(kernel.run("%wjoin SET TIME ZONE 'America/New_York'"))
    try:
        statement = (
            "SELECT TIMESTAMP '2024-05-01 12:00:00Z' AS t, X'0AFF' AS b, map('a', 1) AS m, 1.5D AS d, "
            "INTERVAL 5 SECONDS AS i, array(NULL, 2) AS a, named_struct('x', 1) AS s, 1 AS x, 2 AS x"
        )
        row = good(kernel.run(f"%wjoin {statement}")).texts()[0].splitlines()[2]
    finally:
        good(kernel.run("%wjoin RESET spark.sql.session.timeZone"))
    values = [each.strip() for each in row.split("│")]
    assert values == [
        *(
            "2024-05-01 08:00:00",
            "0AFF",
            "{a -> 1}",
            "1.5",
            "INTERVAL '05' SECOND",
            "[null, 2]",
            "{1}",
            "1",
            "2",
        )
    ]


def test_parameters_are_variables(kernel: Kernel) -> None:
    good(kernel.run("import datetime, numpy\nwidth, least = datetime.timedelta(seconds=10), numpy.int64(1)"))
    statement = f"SELECT A.obj_id {JOIN.format(':width')} AND A.obj_id > :least"
    assert good(kernel.run(f"%wjoin {statement}")).texts()[0].splitlines()[2:] == ["      2", "1 row"]
    good(kernel.run(f"%%wjoin kept <<\n{statement}"))
    assert good(kernel.run("[row.obj_id for row in kept.collect()]")).texts() == ["[2]"]


@pytest.mark.parametrize(
    ("before", "statement", "said"),
    [
        ("", f"SELECT 1 {JOIN.format(':nowhere')}", "set a Python variable of that name in a cell before"),
        (
            "frame = session.sql('SELECT 1')",
            "SELECT :frame",
            "the variable frame is a DataFrame, which is not an SQL value",
        ),
    ],
)
def test_a_parameter_that_is_no_value(kernel: Kernel, before: str, statement: str, said: str) -> None:
    good(kernel.run(before))
    output = kernel.run(f"%wjoin {statement}")
    assert output.status == "error"
    assert output.error.startswith("error[WJ212]: ")
    assert said in output.error


def test_an_error_has_a_caret_at_the_line_of_the_cell_and_no_traceback(kernel: Kernel) -> None:
    number = int(good(kernel.run("len(In)")).texts()[0])
    output = kernel.run(f"%%wjoin\nSELECT 1;\nSELECT A.obj_id {JOIN.format('5')}")
    assert output.status == "error"
    mark = len("SELECT A.obj_id ") + JOIN.index("{}")
    assert output.error == (
        "error[WJ304]: 5 has no unit, but the streams' event time is a timestamp\n"
        f" --> cell [{number}]:3:{mark + 1}\n"
        "  |\n"
        f"3 | SELECT A.obj_id {JOIN.format('5')}\n"
        f"  | {' ' * mark}^\n"
        "help: write a unit: microseconds, milliseconds, seconds, minutes, hours, days or weeks"
    )
    # What stands before it has been run.
    assert len(output.shown) == 1


@pytest.mark.parametrize(
    ("cell", "code", "said"),
    [
        ("%wjoin --onec SELECT 1", "WJ603", "did you mean --once?"),
        ("%wjoin --limit many SELECT 1", "WJ603", "give a number of rows from 1"),
        ("%%wjoin\n-- nothing", "WJ606", "there is no statement"),
        ("%wjoin SELECT nothing FROM camera1", "WJ607", "`nothing` cannot be resolved"),
        ("%wjoin SELECT raise_error('my words')", "WJ704", "my words"),
        ("%wjoin STOP QUERY nobody", "WJ602", "there is no query nobody"),
    ],
)
@pytest.mark.long
def test_other_errors_have_no_traceback_either(kernel: Kernel, cell: str, code: str, said: str) -> None:
    output = kernel.run(cell)
    assert output.status == "error"
    assert output.error.startswith(f"error[{code}]: ")
    assert said in output.error
    assert "Traceback" not in output.error


def test_explain_is_its_page_and_its_text(kernel: Kernel) -> None:
    output = good(kernel.run(f"%%wjoin\nEXPLAIN SELECT A.obj_id {JOIN.format('5 SECONDS')}"))
    assert output.texts()[0].startswith("Relations\n  A = camera1")
    assert '<div class="wjoin-plan">' in output.html()
    assert "The plan as text" in output.html()
    spark = good(kernel.run("%wjoin EXPLAIN SELECT 1 AS one"))
    assert "Physical Plan" in spark.texts()[0]
    assert "Physical Plan" in spark.html()


def test_help_and_nothing_show_the_options(kernel: Kernel) -> None:
    for line in ("%wjoin", "%wjoin --help"):
        assert "--checkpoint DIR" in good(kernel.run(line)).texts()[0]


def test_the_live_page_is_served(kernel: Kernel) -> None:
    (shown,) = good(kernel.run("%wjoin --web")).texts()
    asked = f"import urllib.request; urllib.request.urlopen('{shown.split()[-1]}').status"
    assert good(kernel.run(asked)).texts() == ["200"]


def test_a_select_over_streams_once(kernel: Kernel) -> None:
    (shown,) = good(kernel.run(f"%%wjoin --once --limit 4\n{ONCE}")).texts()
    assert shown.startswith("select: ended at ")
    assert shown.endswith("30 rows, the first 4 shown: --limit shows more")
    good(kernel.run(f"%%wjoin --once kept <<\n{ONCE}"))
    assert good(kernel.run("kept.count(), kept.isStreaming")).texts() == ["(30, False)"]


def test_without_once_a_kept_select_is_an_ordinary_stream(kernel: Kernel) -> None:
    good(kernel.run(f"%wjoin stream << {ONCE}"))
    assert good(kernel.run("stream.isStreaming")).texts() == ["True"]


def test_insert_once_is_followed_to_its_end(kernel: Kernel) -> None:
    good(kernel.run("%wjoin CREATE OR REPLACE SINK once USING parquet OPTIONS (path 'out/once')"))
    output = good(kernel.run(f"%%wjoin --once --checkpoint checkpoints\nINSERT INTO once {ONCE}"))
    assert "once: ended at" in output.texts()[0]
    assert "30 results of the join" in output.texts()[0]
    assert good(kernel.run("session.read.parquet('out/once').count()")).texts() == ["30"]


@pytest.mark.long
def test_a_query_runs_on_as_a_live_cell(kernel: Kernel) -> None:
    insert = f"%%wjoin --checkpoint checkpoints\nINSERT INTO pairs {LIVE.format('5 SECONDS')}"
    good(kernel.run("%wjoin CREATE OR REPLACE SINK pairs USING parquet OPTIONS (path 'out/pairs')"))
    first = good(kernel.run(insert))
    # The button is a widget where the front end has it.
    assert "application/vnd.jupyter.widget-view+json" in first.shown[1]
    assert first.texts()[1] == "%wjoin STOP QUERY pairs stops it."

    def matches(output: Output) -> int:
        words = output.texts()[0].replace(",", "").split()
        return int(words[words.index("results") - 1]) if "results" in words else 0

    kernel.until(lambda: matches(first) > 0, "results")
    some = matches(first)
    kernel.until(lambda: matches(first) > some, "more results")
    assert first.html().count("<svg") == 4
    assert 'class="wjoin-live living"' in first.html()

    # The same statement again: it is the same query, and the output before says so.
    again = good(kernel.run(insert))
    assert "nothing was started" in again.texts()[0]
    assert first.texts()[0] == "pairs: shown by a later run of a cell"
    assert names(kernel) == ["pairs"]

    # A statement with an error leaves it alone, one that its checkpoint refuses, too.
    for wrong, code in ((insert.replace("A.ts", "A.tz"), "WJ202"), (insert.replace("5 S", "6 S"), "WJ702")):
        assert kernel.run(wrong).error.startswith(f"error[{code}]: ")
    assert names(kernel) == ["pairs"]

    # Another statement into the same sink replaces it.
    good(kernel.run("%wjoin CREATE OR REPLACE SINK pairs USING parquet OPTIONS (path 'out/wider')"))
    other = insert.replace("5 S", "6 S").replace("checkpoint checkpoints", "checkpoint others")
    replaced = good(kernel.run(other))
    assert "pairs: stopped at" in again.texts()[0]
    assert "It replaces the query that ran since" in replaced.texts()[0]
    assert names(kernel) == ["pairs"]

    # As does the same one that shall start anew.
    restarted = good(kernel.run(other.replace("%%wjoin", "%%wjoin --restart")))
    assert "It replaces the query" in restarted.texts()[0]
    assert "pairs: stopped at" in replaced.texts()[0]
    good(kernel.run("%wjoin STOP QUERY pairs"))
    assert "pairs: stopped at" in restarted.texts()[0]
    assert "living" not in restarted.html().split("</style>")[0].split("<style>")[0]
    assert restarted.texts()[1] == ""
    assert names(kernel) == []


def names(kernel: Kernel) -> list[str]:
    """Return the queries that run."""
    code = "[each.name for each in session.running if each.query.isActive]"
    found: list[str] = eval(good(kernel.run(code)).texts()[0])
    return found


def test_two_statements_of_a_cell_into_one_sink_are_two_queries(kernel: Kernel) -> None:
    good(kernel.run("%wjoin CREATE OR REPLACE SINK both USING noop"))
    cell = (
        f"%%wjoin\nINSERT INTO both {LIVE.format('5 SECONDS')};\nINSERT INTO both {LIVE.format('6 SECONDS')}"
    )
    good(kernel.run(cell))
    assert names(kernel) == ["both", "both_2"]
    good(kernel.run(cell))
    assert names(kernel) == ["both", "both_2"]
    good(kernel.run(cell.replace("5 SECONDS", "7 SECONDS")))
    assert sorted(names(kernel)) == ["both", "both_2"]
    for name in ("both", "both_2"):
        good(kernel.run(f"%wjoin STOP QUERY {name}"))


SET = f"""EXECUTE STATEMENT SET doors {{}}BEGIN
INSERT INTO near {LIVE.format("1 SECOND")};
INSERT INTO far {LIVE.format("5 SECONDS").replace("A.ts", "A.obj_id % 2 AS odd")};
END"""

BLOCKED = """
for folder in list(pathlib.Path("out/far").glob("odd=*")):
    folder.rename(f"{folder}-away")
    folder.touch()
"""


@pytest.mark.long
def test_a_statement_set_is_a_live_cell(kernel: Kernel) -> None:
    good(
        kernel.run(
            "%%wjoin\nCREATE OR REPLACE SINK near USING parquet OPTIONS (path 'out/near');\n"
            "CREATE OR REPLACE SINK far USING json OPTIONS (path 'out/far') PARTITIONED BY (odd)"
        )
    )
    explain = SET.format("").replace("EXECUTE STATEMENT SET doors", "EXPLAIN STATEMENT SET")
    explained = good(kernel.run(f"%%wjoin\n{explain}"))
    assert "near, far share one window join" in explained.texts()[0]
    assert '<details open="open">' in explained.html()
    cell = f"%%wjoin --checkpoint checkpoints\n{SET.format('')}"
    first = good(kernel.run(cell))
    kernel.until(lambda: "results of the join" in first.texts()[0], "results")
    assert "nothing was started" in good(kernel.run(cell)).texts()[0]
    assert names(kernel) == ["doors"]

    # A changed set replaces it, on its checkpoint.
    good(kernel.run("%wjoin CREATE OR REPLACE SINK narrow USING noop"))
    more = f"INSERT INTO narrow {LIVE.format('1 SECOND')}"
    changed = good(kernel.run(cell.replace("\nEND", f"\n{more};\nEND")))
    assert "It replaces the query that ran since" in changed.texts()[0]
    assert names(kernel) == ["doors"]
    dropped = good(kernel.run("%wjoin ALTER STATEMENT SET doors DROP narrow"))
    assert "doors: stopped at" in changed.texts()[0]

    # A sink that fails: what waits stands in the cell.
    good(kernel.run("%wjoin STOP QUERY doors"))
    assert "doors: stopped at" in dropped.texts()[0]
    good(kernel.run(BLOCKED))
    failing = good(kernel.run(cell.replace("BEGIN", "ON FAILURE KEEP OTHERS BEGIN")))
    kernel.until(lambda: " for the sink far since " in failing.texts()[0], "what waits")
    good(kernel.run("%wjoin STOP QUERY doors"))
    stopping = good(kernel.run(cell))
    kernel.until(lambda: "failed at" in stopping.texts()[0], "the failure")
    assert "the sink far could not be written: " in stopping.texts()[0]


@pytest.mark.long
def test_the_inserts_of_a_cell_are_a_set_where_sharing_is_auto(kernel: Kernel) -> None:
    good(kernel.run("%%wjoin\nCREATE OR REPLACE SINK one USING noop; CREATE OR REPLACE SINK two USING noop"))
    cell = "%%wjoin --checkpoint shared\n" + ";\n".join(
        f"INSERT INTO {name} {LIVE.format(':width')}" for name in ("one", "two")
    )
    good(kernel.run("%wjoin SET wjoin.sharing = auto"))
    good(kernel.run("width = '2 seconds'"))
    good(kernel.run(cell))
    assert names(kernel) == ["set_one"]
    assert "nothing was started" in good(kernel.run(cell)).texts()[0]
    good(kernel.run("%wjoin SET wjoin.sharing = off"))
    good(kernel.run("%wjoin STOP QUERY set_one"))


def test_an_interrupt_ends_a_select_and_no_other_query(kernel: Kernel) -> None:
    good(kernel.run("%wjoin CREATE OR REPLACE SINK other USING noop"))
    good(kernel.run(f"%wjoin INSERT INTO other {LIVE.format('5 SECONDS')}"))
    run = kernel.begin(f"%%wjoin\n{LIVE.format('5 SECONDS')};\nSELECT 'not run'")
    kernel.until(lambda: _ROWS.search("".join(kernel.output(run).texts())), "rows of the SELECT")
    assert "Interrupt the cell to stop it." in kernel.output(run).texts()[0]
    kernel.manager.interrupt_kernel()
    output = good(kernel.end(run))
    (shown,) = output.texts()
    assert shown.startswith("select: stopped at ")
    assert _ROWS.search(shown)
    ends = kernel.run("[(each.name, each.state, str(each.failed)) for each in session.running]").texts()
    assert names(kernel) == ["other"], ends
    good(kernel.run("%wjoin STOP QUERY other"))


def test_an_interrupt_of_a_table_ends_what_spark_runs(kernel: Kernel) -> None:
    run = kernel.begin("print('begun')\n%wjoin SELECT count(*) FROM range(1000000000000) WHERE sqrt(id) < 0")
    jobs = "len(session.sparkContext.statusTracker().getActiveJobsIds())"
    kernel.until(lambda: "begun" in kernel.output(run).streams, "the cell")
    kernel.manager.interrupt_kernel()
    output = kernel.end(run)
    assert output.status == "error"
    assert output.error == "interrupted"
    good(kernel.run(f"import time\nwhile {jobs}: time.sleep(0.1)"))


def test_a_select_in_the_background(kernel: Kernel) -> None:
    cell = f"%%wjoin --background --limit 5\n{LIVE.format('5 SECONDS')}"
    first = good(kernel.run(cell, cell_id="one"))
    kernel.until(lambda: _ROWS.search(first.texts()[0]), "rows of the SELECT")
    again = good(kernel.run(cell, cell_id="one"))
    assert "nothing was started" in again.texts()[0]
    (name,) = names(kernel)
    # A cell that is changed replaces its query; where it is another cell it has one of its own.
    good(kernel.run(cell.replace("5 SECONDS", "6 SECONDS"), cell_id="two"))
    assert len(names(kernel)) == 2
    good(kernel.run(cell.replace("5 SECONDS", "7 SECONDS"), cell_id="one"))
    assert len(names(kernel)) == 2
    assert name in again.texts()[0]
    assert "stopped at" in again.texts()[0]
    for each in names(kernel):
        good(kernel.run(f"%wjoin STOP QUERY {each}"))


def test_a_failing_query_tells_why_in_its_cell(kernel: Kernel) -> None:
    good(kernel.run("%wjoin CREATE OR REPLACE SINK failing USING noop"))
    statement = "INSERT INTO failing SELECT raise_error('too bad') FROM live1"
    output = good(kernel.run(f"%wjoin {statement}"))
    kernel.until(lambda: "failed at" in output.texts()[0], "the failure")
    assert "error[WJ704]" in output.texts()[0]
    assert "too bad" in output.html()
    waited = kernel.run(f"%wjoin --checkpoint failing --once {statement.replace('live1', 'door')}")
    assert waited.status == "error"
    assert waited.error.startswith("error[WJ704]: the query into failing failed: ")
    assert waited.error.count("failing failed") == 1
    assert "error" not in waited.texts()[0]


def test_loading_twice_changes_nothing(kernel: Kernel) -> None:
    for line in ("%load_ext wjoin", "%reload_ext wjoin"):
        good(kernel.run(line))
    assert good(kernel.run("session is get_ipython().run_line_magic('wjoin', '--session')")).texts() == [
        "True"
    ]


def test_a_spark_that_was_stopped_ends_its_cells_and_the_next_cell_starts_another(kernel: Kernel) -> None:
    """The last one of this kernel."""
    good(kernel.run("%wjoin CREATE OR REPLACE SINK last USING noop"))
    output = good(kernel.run(f"%wjoin INSERT INTO last {LIVE.format('5 SECONDS')}"))
    good(kernel.run("session.spark.stop()"))
    kernel.until(lambda: "wjoin-live living" not in output.html(), "the end of the live cell")
    started = good(kernel.run("%wjoin SELECT 1 AS one"))
    assert "Started Spark" in started.texts()[0]


@pytest.mark.long
def test_a_query_is_asked_for_its_state_and_why(kernel: Kernel) -> None:
    sink = (
        "CREATE OR REPLACE SINK asked USING parquet OPTIONS (path 'asked', checkpointLocation 'asked_kept')"
    )
    insert = f"INSERT INTO asked {ONCE}"
    good(kernel.run(f"%%wjoin --once\n{sink};\n{insert}"))
    # The watermarks are 5 s behind the last row: those of 23 s and later wait.
    asked = "SELECT stream, count(*) AS kept FROM STATE OF QUERY {} WHERE size(waits_for) > 0 GROUP BY stream"
    for query in ("asked", "'asked_kept'"):
        shown = good(kernel.run(f"%%wjoin\n{asked.format(query)} ORDER BY stream")).texts()[0]
        assert re.search(r"A +│ +7\n B +│ +7\n", shown), shown
    why = good(kernel.run(f"%%wjoin\nEXPLAIN MATCH A(k = 1), B(k = 1) {insert}"))
    assert "These rows are a result:" in "".join(why.texts())
    delay = good(kernel.run("%%wjoin\nEXPLAIN DELAY door"))
    assert "door: 30 rows with ts" in "".join(delay.texts())
