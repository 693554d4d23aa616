"""The parts of the command line that need no Spark."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from wjoin.checkpoints.committed import committed_files
from wjoin.cli import main
from wjoin.commands.complaints import printed_warnings
from wjoin.commands.live import _cells
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.spans import Span
from wjoin.measured.totals import Totals
from wjoin.progress import read
from wjoin.queries.open_groups import waiting
from wjoin.settings.triggers import processing_time
from wjoin.sources.format_options import SINK_OPTIONS, STREAM_OPTIONS, check_options
from wjoin.spark.spark_failures import cause, failure, first_line


def report(batch: int, rows: int | None, start: str = "2024-05-01T12:00:00.000Z") -> dict[str, object]:
    """A report of Spark: of a micro-batch, or of an idle time where ``rows`` is None."""
    body: dict[str, object] = {
        "name": "pairs",
        "batchId": batch,
        "timestamp": start,
        "batchDuration": 2000,
        "numInputRows": rows or 0,
        "durationMs": {"triggerExecution": 2000} | ({} if rows is None else {"addBatch": 1900}),
    }
    if rows is not None:
        counts = {"matches": rows // 2, "comparisons": rows, "rows:A": rows, "late:A": 1, "undated:A": 2}
        body["observedMetrics"] = {"wjoin:1:0": {"counts": counts | {"kept:A": 7, "kept_bytes:A": 70}}}
    return body


def test_an_idle_report_neither_hides_what_was_nor_what_comes() -> None:
    totals = Totals()
    assert totals.line() == "no new rows"
    totals.add(read(report(0, 10)))
    totals.add(read(report(1, None, "2024-05-01T12:00:10.000Z")))
    assert totals.newest is not None
    assert (totals.newest.batch, totals.newest.state_rows) == (0, {"A": 7})
    assert totals.idle_since is not None
    assert totals.idle_since.isoformat() == "2024-05-01T12:00:02+00:00"
    totals.add(read(report(1, 6, "2024-05-01T12:01:00.000Z")))
    assert totals.line() == (
        "16 rows in (A 16), 8 results of the join, 2 late, 4 without event time, 2 micro-batches"
    )


def test_a_micro_batch_without_rows_leaves_the_state_as_it_was() -> None:
    told = report(0, 10)
    counts = told["observedMetrics"]["wjoin:1:0"]["counts"]
    counts |= {"seen:A": 1_714_564_800_000_000, "delay:A": 1_000_000}
    first = read(told)
    # Spark makes one to close groups; no worker of the join reports.
    told = report(1, 0, "2024-05-01T12:00:10.000Z")
    told["observedMetrics"] = {"wjoin:1:0": {"counts": dict.fromkeys(counts)}}
    told["stateOperators"] = [
        {"operatorName": "stateStoreSave", "numRowsTotal": 3, "memoryUsedBytes": 30}
        | {"numRowsDroppedByWatermark": 0}
    ]
    silent = read(told)
    assert silent.state_rows == {}
    second = silent.after(first)
    assert (second.state_rows, second.spark_state_rows) == ({"A": 7}, 3)
    assert (second.watermarks, second.seen) == (first.watermarks, first.seen)
    assert (second.rows_in, second.matches) == ({}, 0)
    assert silent.after(None) == silent
    # The page has no zero between two values, and the number of the table.
    totals = Totals()
    for each in (first, second, read(report(2, 4, "2024-05-01T12:00:20.000Z")).after(second)):
        totals.add(each)
    kept = [each.rows_of_state for each in totals.hour().points]
    assert kept == [7, 10, 7]
    totals = Totals()
    totals.add(first)
    totals.add(second)
    assert _cells(totals)[4:6] == ["10", "0.0 MB"]


def test_groups_that_wait_are_told() -> None:
    told = {
        **report(3, 10),
        "eventTime": {"watermark": "2024-05-01T11:59:49.999Z"},
        "stateOperators": [
            {"operatorName": name, "numRowsTotal": rows, "memoryUsedBytes": 1, "numRowsDroppedByWatermark": 0}
            for name, rows in (("transformWithStateExec", 8), ("stateStoreSave", 2), ("dedupe", 5))
        ],
    }
    words = waiting(read(told))
    assert words == "2 groups of Spark's aggregate wait for the watermark, now at 2024-05-01 11:59:49.999"
    assert read(told).spark_state_rows == 7
    assert waiting(read(report(3, 10))) == waiting(None) == ""
    begun = {**told, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    assert waiting(read(begun)).endswith("wait for the watermark, which is not set yet")


def test_rows_that_a_stream_drops_before_the_join_are_counted_with_it() -> None:
    body = report(0, 10)
    below = {"rows:clicks": 4, "undated:clicks": 3, "ahead:clicks": 1, "furthest:clicks": 99}
    body["observedMetrics"] |= {"wjoin-below:clicks": below}
    found = read(body)
    assert (found.rows_in, found.null_times) == ({"A": 10, "clicks": 4}, {"A": 2, "clicks": 3})
    assert (found.ahead, found.furthest) == ({"clicks": 1}, {"clicks": 99})
    body["observedMetrics"] |= {"wjoin-below:clicks": dict.fromkeys(below, 0)}
    assert read(body).rows_in == {"A": 10}


def test_a_query_without_a_join_tells_the_rows_of_its_sources() -> None:
    totals = Totals()
    totals.add(read({"name": "copy", "batchId": 4, "numInputRows": 1200, "durationMs": {"addBatch": 3}}))
    assert totals.line() == "1,200 rows in, 1 micro-batch"


def test_what_spark_says_is_one_line_without_plan_and_inner_names() -> None:
    sorting = AnalysisException(
        "Sorting is not supported on streaming DataFrames;\n~Sort [k#27L ASC]\n+- View (`_pyspark_7b9e5e`)"
    )
    assert first_line(sorting) == "Sorting is not supported on streaming DataFrames"
    unknown = AnalysisException(
        "[UNRESOLVED_COLUMN] A column with name `x` cannot be resolved. Did you mean one of the"
        " following? [`A`, `__wjoin_input_0`, `B`, `__wjoin_match_time`]. SQLSTATE: 42703;"
        " line 1 pos 21;\n'Project"
    )
    assert first_line(unknown) == (
        "[UNRESOLVED_COLUMN] A column with name `x` cannot be resolved. Did you mean one of the"
        " following? [`A`, `B`, MATCH_TIME()]. SQLSTATE: 42703"
    )
    java = Exception("An error occurred while calling o4.sql.\n: org.apache.spark.SparkException: no\n\tat a")
    assert first_line(java) == cause(java) == "no"


def test_the_cause_of_a_failure_is_found_below_what_wraps_it() -> None:
    wrapped = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
        "Job aborted due to stage failure: Task 0 in stage 7.0 failed 1 times,"
        " most recent failure: Lost task 0.0 in stage 7.0 (TID 16)"
        " (10.0.0.1 executor driver): java.io.IOException: Mkdirs failed\n\tat org.x\n=== Streaming Query ==="
    )
    assert cause(Exception(wrapped)) == "java.io.IOException: Mkdirs failed"
    python = "Task failed\nTraceback (most recent call last):\n  File x\nValueError: no such key\n\tat org.x"
    assert cause(Exception(python)) == "ValueError: no such key"
    read = "x terminated with exception: [FAILED] f.parquet\n\tat org.x\nCaused by: java.X: no Parquet file"
    assert cause(Exception(f"Query {read}")) == "[FAILED] f.parquet (java.X: no Parquet file)"
    gone = "[STREAM_FAILED] Query [id = 1] terminated with exception: Option 'basePath' not found"
    assert cause(Exception(gone)) == "the folder of a source is missing"


def test_an_error_of_ours_in_a_worker_keeps_code_and_remedy() -> None:
    text = "INSERT INTO pairs SELECT 1"
    inner = "terminated: x\nWJoinError: error[WJ703]: with 4 workers\nhelp: set it to 4\n\tat x"
    found = failure(
        StreamingQueryException(inner), Span(12, 17), text, sink="pairs", checkpoint="/checkpoints/pairs"
    )
    assert found.render().splitlines() == [
        "error[WJ703]: with 4 workers (the query into pairs, checkpoint /checkpoints/pairs)",
        " --> <sql>:1:13",
        "  |",
        "1 | INSERT INTO pairs SELECT 1",
        "  |             ^^^^^",
        "help: set it to 4",
    ]
    assert failure(PySparkException("boom"), Span(0, 1), text).code == "WJ704"
    assert failure(AnalysisException("boom"), Span(0, 1), text).code == "WJ607"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "type statements at a prompt"),
        (["run", "-e", "SELECT 1", "--rows", "0"], "argument --rows: 0 is not a number of rows"),
        (["shell", "--set", "x"], "--set x is not of the form name=value"),
        (["explain"], "help: see wjoin explain --help"),
        (["run", "no.sql"], "no.sql cannot be read: No such file or directory"),
        (["run", __file__.replace("test_pieces.py", "")], "cannot be read: Is a directory"),
    ],
)
def test_a_command_line_that_lacks_something_says_what(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2
    assert said in capsys.readouterr().err


def test_output_that_nobody_reads_is_no_error() -> None:
    command = "import sys; from wjoin.cli import main; sys.stdin.read(); sys.exit(main(['jar']))"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", command], **pipes) as process:
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def test_carets_stand_below_what_they_mark_whatever_stands_before() -> None:
    text = "SELECT '日本',\te\u0301, nowhere FROM x"
    begin = text.index("nowhere")
    lines = WJoinError("WJ202", "no", span=Span(begin, begin + 7), text=text).render().splitlines()
    # Two signs of two places each, a tab that stays one, and an accent that takes no place.
    assert lines[3:5] == [f"1 | {text}", "  |               \t   ^^^^^^^"]


def test_an_option_that_nobody_reads_is_an_error_at_its_place() -> None:
    text = "CREATE STREAM s USING parquet OPTIONS (path 'x', maxFilePerTrigger '1')"
    with pytest.raises(WJoinError) as caught:
        check_options(["path", "maxFilePerTrigger"], STREAM_OPTIONS, "Parquet", Span(0, len(text)), text)
    assert caught.value.code == "WJ603"
    assert caught.value.help == "did you mean maxFilesPerTrigger?"
    assert caught.value.span is not None
    assert caught.value.span.of(text) == "maxFilePerTrigger"


@pytest.mark.parametrize(
    ("options", "known", "provider"),
    [
        (["PATH", "MaxFilesPerTrigger", "parquet.compression"], STREAM_OPTIONS, "parquet"),
        (["kafka.bootstrap.servers", "subscribe", "startingOffsets"], STREAM_OPTIONS, "kafka"),
        (["anything"], STREAM_OPTIONS, "com.example.source"),
        (["path", "checkpointLocation", "trigger", "outputMode", "header"], SINK_OPTIONS, "csv"),
    ],
)
def test_options_that_somebody_reads_pass(
    options: list[str], known: dict[str, frozenset[str]], provider: str
) -> None:
    check_options(options, known, provider, Span(0, 0), "")
    with pytest.raises(WJoinError, match="rate has no option subscribe"):
        check_options(["subscribe"], STREAM_OPTIONS, "rate", Span(0, 0), "")


def test_triggers() -> None:
    assert processing_time("10 seconds") == "10000 milliseconds"
    assert processing_time("0 s") == "0 milliseconds"
    for bad in ("10", "soon", "-1 second", "1 microsecond", "available now"):
        with pytest.raises(WJoinError, match="WJ603"):
            processing_time(bad)


def test_committed_files_are_those_of_complete_micro_batches(tmp_path: Path) -> None:
    assert committed_files(tmp_path) == []
    log = tmp_path / "_spark_metadata"
    log.mkdir()

    def entry(name: str, *files: str) -> None:
        lines = [json.dumps({"path": f"file://{tmp_path}/{file}", "action": "add"}) for file in files]
        (log / name).write_text("\n".join(["v1", *lines]))

    entry("0", "a")
    entry("1", "b")
    assert committed_files(tmp_path) == [f"{tmp_path}/a", f"{tmp_path}/b"]
    entry("9.compact", "a", "b", "k=1%202/c")
    entry("10", "d")
    entry(".11.tmp", "unfinished")
    expected = [f"{tmp_path}/{name}" for name in ("a", "b", "k=1 2/c", "d")]
    assert committed_files(str(tmp_path)) == expected


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("1", None, "has no entry of micro-batch 1"),
        ("9.compact", None, "has no entry of micro-batches 2, 3, 4, 5, 6, …"),
        ("10", b"", "10, the entry of micro-batch 10, cannot be read: it begins with '' in place of 'v1'"),
        ("10", b'v1\n{"path":"file:/a","act', "the entry of micro-batch 10, cannot be read: "),
        ("10", b'v1\n{"path":"file:/a"}', "the entry of micro-batch 10, cannot be read: 'action'"),
        ("10", b'v1\n["file:/a"]', "the entry of micro-batch 10, cannot be read: "),
        ("9.compact", b"v1\n\xff\xfe", "the entry of micro-batches up to 9, cannot be read: "),
    ],
)
def test_a_damaged_log_of_a_sink_is_told(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    entry = f'v1\n{{"path":"file://{tmp_path}/a","action":"add"}}'
    names = ["0", "1", "2"] if name == "1" else ["0", "1", "9.compact", "10"]
    for each in names:
        (log / each).write_text(entry)
    assert committed_files(tmp_path) == [f"{tmp_path}/a"]
    if content is None:
        (log / name).unlink()
    else:
        (log / name).write_bytes(content)
    with pytest.raises(WJoinError) as caught:
        committed_files(tmp_path)
    assert caught.value.code == "WJ716"
    assert said in caught.value.message
    assert "from a copy" in caught.value.help


@pytest.mark.parametrize(
    ("said", "damaged", "again"),
    [
        (
            "Job aborted. [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
            "file:///in/a-1.parquet.  SQLSTATE: KD001",
            "a source is damaged, the query is not: restore or repair /in/a-1.parquet",
            "no row is lost; with the stream's option ignoreCorruptFiles 'true'",
        ),
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///in/a-1.parquet. "
            "File does not exist.",
            "restore or repair /in/a-1.parquet",
            "ignoreMissingFiles",
        ),
        (
            "Failed to read log file file:/c/pairs/offsets/1. [MALFORMED_LOG_FILE] Log file was malformed",
            "the checkpoint is damaged: restore /c/pairs/offsets/1 from",
            "rows that its sources still hold",
        ),
        (
            "Checksum error: file:/c/pairs/commits/1 at 0 exp: -578336859 got: 117152825",
            "the checkpoint is damaged: restore /c/pairs/commits/1 from",
            "from a copy",
        ),
        (
            "Failed to read log file file:/out/_spark_metadata/1. [MALFORMED_LOG_FILE] Log file was",
            "the log of the sink's folder is damaged: restore /out/_spark_metadata/1 from",
            "only the log distinguishes them",
        ),
        (
            "IllegalStateException: file:/out/_spark_metadata/1 doesn't exist when compacting batch 2",
            "restore /out/_spark_metadata/1",
            "only the log distinguishes them",
        ),
        (
            "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE] An error occurred during loading "
            "state. Error reading streaming state file of file:/c/pairs/state/0/0/2.changelog does not exist",
            "the state of the query is damaged: restore /c/pairs/state/0/0/2.changelog from",
            "new checkpoint folder",
        ),
        (
            "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.",
            "restore /c/pairs/state",
            "new checkpoint folder",
        ),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.", "another query uses", "own"),
        ("java.io.IOException: No space left on device", "free disk space", "no row is lost"),
        ("[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing", "the disk has room", "no row is lost"),
        (
            "[CAST_INVALID_INPUT] The value 'x'",
            "fix the cause",
            "resumes from its checkpoint, file:/c/pairs",
        ),
        (
            "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading file "
            "file:///in/a-1.parquet. Data type mismatches",
            "fix the cause",
            "resumes",
        ),
    ],
)
def test_the_help_of_a_failed_query_names_what_is_damaged(said: str, damaged: str, again: str) -> None:
    error = failure(StreamingQueryException(said), Span(0, 1), "x", sink="pairs", checkpoint="file:/c/pairs")
    assert error.code == "WJ704"
    assert damaged in error.help
    assert again in error.help


def test_warnings_are_printed_once_and_without_python_lines(capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT 1\nFROM a"
    with printed_warnings("script.sql"):
        for _ in range(2):
            ours = WJoinWarning("WJ801", "no delay", span=Span(14, 15), text=text)
            warnings.warn(ours, stacklevel=1)
            warnings.warn("cannot be\nkept", UserWarning, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == [
        "warning[WJ801]: no delay",
        " --> script.sql:2:6",
        "  |",
        "2 | FROM a",
        "  |      ^",
        f"help: {ours.help}",
        "wjoin: warning: cannot be kept",
    ]
