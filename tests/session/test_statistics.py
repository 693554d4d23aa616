"""ALTER STREAM, ANALYZE STREAM, EXPLAIN COST and ANALYZE, and the settings they go with."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import wjoin
from wjoin.grammar.errors import WJoinError
from wjoin.parts.routes.hash_route import bucket_numbers

JOIN = "SELECT a.k FROM a, b WINDOW = 1 SECOND WHERE a.k = b.k"


@pytest.fixture
def streams(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """Two streams of 4,000 rows over 40 s: every fifth row of a has the key 0, b has 100 keys."""
    heavy = "CAST(IF(id % 5 = 0, 0, 1 + id % 399) AS BIGINT)"
    for name, key in (("a", heavy), ("b", "id % 100")):
        rows = session.range(4000).selectExpr(f"{key} AS k", "timestamp_millis(id * 10) AS ts", "'x' AS word")
        for part, frame in enumerate(rows.randomSplit([1.0, 1.0], seed=1)):
            frame.coalesce(1).write.parquet(str(tmp_path / name / str(part)))
        session.sql(
            f"CREATE OR REPLACE STREAM {name} (k BIGINT, ts TIMESTAMP, word STRING) USING parquet "
            f"OPTIONS (path '{tmp_path / name}/*', maxFilesPerTrigger 1) "
            "WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
        )
    return session


def known(session: wjoin.Session, statement: str) -> dict[str, tuple[float, str]]:
    return {row.statistic: (row.value, row.source) for row in session.sql(statement).collect()}


def test_analyze_reads_what_the_source_holds(streams: wjoin.Session) -> None:
    found = known(streams, "ANALYZE STREAM a")
    assert {source for _, source in found.values()} == {"analyzed"}
    assert found["rows"][0] == 4000
    assert found["rate"][0] == pytest.approx(100, rel=0.01)
    assert found["distinct.k"][0] == pytest.approx(400, rel=0.05)
    assert found["heaviest.k"][0] == pytest.approx(0.2, rel=0.02)
    assert found["bucket.k"][0] == bucket_numbers(np.array([0]))
    hashed = streams.spark.sql("SELECT xxhash64('x') & 4294967295L AS code").collect()
    assert found["bucket.word"][0] == bucket_numbers(np.array([hashed[0].code]))
    assert found["distinct.word"][0] == 1
    assert (found["minimum.k"][0], found["maximum.k"][0]) == (0, 399)
    assert "minimum.word" not in found
    assert found["width"][0] > 8


def test_fractions_have_a_range_and_no_count(session: wjoin.Session) -> None:
    rows = "(1.5D, TIMESTAMP'2026-01-01'), (-2D, TIMESTAMP'2026-01-02'), (double('NaN'), NULL), (NULL, NULL)"
    session.stream("measured", session.sql(f"SELECT * FROM VALUES {rows} AS t(speed, ts)"), "ts")
    found = known(session, "ANALYZE STREAM measured")
    assert (found["minimum.speed"][0], found["maximum.speed"][0]) == (-2, 1.5)
    assert "distinct.speed" not in found


@pytest.mark.long
def test_what_lives_together_is_counted_by_a_column(session: wjoin.Session) -> None:
    """Of eight rows of a key, seven are of one depot."""
    rows = session.range(4000).selectExpr(
        "id DIV 8 AS k",
        "timestamp_millis(id) AS ts",
        "CAST(IF(id % 8 = 0, 1, 2) + id DIV 1000 * 10 AS INT) AS depot",
    )
    session.stream("parcels", rows, home_by="depot")
    by_home = {row.statistic: row.value for row in session.sql("ANALYZE STREAM parcels").collect()}
    assert by_home["local.k"] == pytest.approx(42 / 56, abs=0.1)
    by_key = {row.statistic: row.value for row in session.sql("ANALYZE STREAM parcels BY k").collect()}
    assert by_key["local.k"] == pytest.approx(1, abs=0.05)
    with pytest.raises(WJoinError, match="the stream parcels has no column dept") as refused:
        session.sql("ANALYZE STREAM parcels BY dept")
    assert refused.value.code == "WJ202" and "depot" in str(refused.value.help)


def test_a_sample_tells_no_rate(streams: wjoin.Session) -> None:
    found = known(streams, "ANALYZE STREAM b SAMPLE 500 ROWS")
    assert "rate" not in found
    assert "rows" not in found
    assert 1 <= found["distinct.k"][0] <= 101


@pytest.mark.long
def test_what_the_user_gives_counts_before_what_was_read(streams: wjoin.Session) -> None:
    known(streams, "ANALYZE STREAM a")
    found = known(streams, "ALTER STREAM a SET STATISTICS (rate = 7, distinct.k = 3)")
    assert found["rate"] == (7, "given")
    assert found["distinct.k"] == (3, "given")
    assert found["rows"] == (4000, "analyzed")
    text = streams.explain(JOIN)
    assert "a: 7 rows/s (given)" in text
    assert known(streams, "ALTER STREAM a RESET STATISTICS") == {}


def test_an_unknown_column_is_refused_with_the_nearest_name(streams: wjoin.Session) -> None:
    with pytest.raises(WJoinError) as refused:
        streams.sql("ALTER STREAM a SET STATISTICS (distinct.wrd = 5)")
    assert refused.value.code == "WJ202"
    assert "word" in str(refused.value.help)
    with pytest.raises(WJoinError) as refused:
        streams.sql("ANALYZE STREAM aa")
    assert refused.value.code == "WJ602"


@pytest.mark.long
def test_disorder_is_a_time_of_the_event_time_column(streams: wjoin.Session) -> None:
    found = known(streams, "ALTER STREAM a SET STATISTICS (disorder = 2 SECONDS)")
    assert found["disorder"] == (2, "given")
    rows = {row.statistic: row.unit for row in streams.sql("ANALYZE STREAM a").collect()}
    assert rows["disorder"] == "seconds"
    assert (rows["rate"], rows["width"], rows["distinct.k"], rows["heaviest.k"]) == (
        "rows/s",
        "bytes",
        "values",
        "share",
    )
    with pytest.raises(WJoinError) as refused:
        streams.sql("ALTER STREAM a SET STATISTICS (disorder = 2)")
    assert refused.value.code == "WJ304"


def test_explain_cost_lists_every_candidate(streams: wjoin.Session) -> None:
    text = streams.explain(f"EXPLAIN COST {JOIN}")
    listed, _, sizing = text[text.index("Candidates") :].partition("\n\nSizing\n")
    table = listed.splitlines()
    assert len(table) == 3 + 10
    assert table[1].startswith("  every plan costs at least ")
    assert "(exact hw)" in table[3]
    assert table[3].endswith("chosen")
    assert sum("chosen" in line for line in table) == 1
    assert re.search(r"busy \d+% of the time\n.*falls behind from .* rows/s on", sizing, re.DOTALL)


@pytest.mark.long
def test_an_objective_of_throughput_spreads_the_cost_of_micro_batches(streams: wjoin.Session) -> None:
    shown = {}
    for objective in ("latency", "Throughput"):
        streams.sql(f"SET wjoin.objective = {objective}")
        found = re.search(r"micro-batches ([\d.]+) (ms|us)", streams.explain(f"EXPLAIN COST {JOIN}"))
        assert found is not None
        shown[objective] = float(found[1]) * (1000 if found[2] == "ms" else 1)
    assert shown["Throughput"] < shown["latency"] / 50


@pytest.mark.long
def test_state_in_files_is_weighed_with_costs_of_its_own(streams: wjoin.Session) -> None:
    shown = {}
    for home in ("spark", "files"):
        streams.sql(f"SET wjoin.state = {home}")
        shown[home] = streams.explain(f"EXPLAIN COST {JOIN}")
    costs = {home: re.search(r"micro-batches ([\d.]+ (?:ms|us))", text) for home, text in shown.items()}
    assert all(costs.values())
    assert len({each[1] for each in costs.values() if each}) == 2


def test_explain_analyze_runs_the_statement(streams: wjoin.Session) -> None:
    for name in "ab":
        known(streams, f"ANALYZE STREAM {name}")
    text = streams.explain(f"EXPLAIN ANALYZE {JOIN}")
    lines = text[text.index("Measured over 8,000 rows in 2 micro-batches") :].splitlines()
    late = lines.index("  0 late rows were dropped")
    numbers = {line[:24].strip(): line[24:].split() for line in lines[2:late]}
    estimated, measured = (float(each.replace(",", "")) for each in numbers["results a row"])
    assert measured == pytest.approx(estimated, rel=0.3)
    assert measured == pytest.approx(_count(streams) / 8000, rel=0.01)
    layers = [" ".join(line.split()[:-2]) for line in lines[late + 1 :]]
    assert layers[:3] == ["a micro-batch", "plans, offsets, logs", "tasks"]
    assert layers[3:] == [
        *("reading, and on the way to Python", "packing for the workers", "shuffle", "state", "join"),
    ]


def _count(session: wjoin.Session) -> int:
    """Return how many results Spark's own join of the same rows finds."""
    heavy = "CAST(IF(id % 5 = 0, 0, 1 + id % 399) AS BIGINT)"
    a = session.range(4000).selectExpr(f"{heavy} AS k", "id * 10 AS t")
    b = session.range(4000).selectExpr("id % 100 AS k", "id * 10 AS t")
    return a.alias("a").join(b.alias("b"), "k").where("abs(a.t - b.t) <= 1000").count()


@pytest.mark.long
def test_the_document_is_json_of_the_promised_shape(streams: wjoin.Session) -> None:
    explained = streams.explain(JOIN)
    body = json.loads(explained.rendered("json"))
    assert body["constraints"]["given"] == [
        {"from": "a", "to": "b", "lo": -1_000_000, "hi": 1_000_000, "alternative": 1}
    ]
    assert {"completed", "given"} <= body["constraints"].keys()
    assert body["chosen"]["kernel"] == "hw"
    wanted = {"bounds", "route", "kernel", "passes", "order", "cost", "state_rows"}
    assert all(wanted <= each.keys() for each in body["candidates"])
    assert body["equality_classes"] == [{"type": "bigint", "parts": ["a.k", "b.k"]}]
    assert body["residual"] == []
    assert [each["rate"] for each in body["statistics"]] == [{"value": 1000.0, "source": "default"}] * 2
    assert [each["members"] for each in body["stages"][0]["inputs"]] == [["a"], ["b"]]
    assert "<svg" in explained._repr_html_()
    for unknown in ("pdf", "dot"):
        with pytest.raises(WJoinError, match="WJ606"):
            explained.rendered(unknown)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wjoin.memory", "lots"),
        ("wjoin.memory", "0"),
        ("wjoin.memory", "-1g"),
        ("wjoin.memory", "9" * 5000),
        ("wjoin.stretch", "9" * 18 + "k"),
        ("wjoin.interval", "5"),
        ("wjoin.interval", "0 seconds"),
        ("wjoin.cores", "0"),
        ("wjoin.cores", "two"),
        ("wjoin.cores", "9" * 400),
        ("wjoin.network", "fast"),
        ("wjoin.objective", "speed"),
        ("wjoin.disk", "lots"),
        ("wjoin.shedding", "cubic"),
        ("wjoin.shedding_base", "1.5"),
        ("wjoin.shedding_base", "nan"),
        ("wjoin.executors", "2"),
        ("wjoin.executors", "4 2"),
        ("wjoin.executors", "0 2"),
        ("wjoin.executors", "2 8 30"),
        ("wjoin.executors", "2 8 30 soon"),
        ("wjoin.utilization", "0.2 0.4 0.8"),
        ("wjoin.utilization", "0.2 0.4 0.9 0.8"),
    ],
)
def test_bad_settings_are_refused(session: wjoin.Session, name: str, value: str) -> None:
    with pytest.raises(WJoinError) as refused:
        session.sql(f"SET {name} = '{value}'")
    assert refused.value.code == "WJ603"
    assert name in refused.value.message
