"""LATE ROWS INTO of streams of topics: late records are in files, or in a topic, once for each query."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.kafka.conftest import Topics
from tests.tiers import tiers

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*WJ80[346]")]

NAMES = ("one", "two", "three")
DELAY = 20
RUNS = 3

PAIRS = "SELECT A.n AS a, B.n AS b FROM one A, two B WINDOW (A, B) = 9 WHERE A.k = B.k"
CHAIN = """SELECT X.a, X.b, C.n AS c
    FROM (SELECT A.n AS a, B.n AS b, A.n, A.k FROM one A, two B WINDOW (A, B) = 9 WHERE A.k = B.k)
    WATERMARK n DELAY OF 50 AS X, three C WINDOW (X, C) = 5 WHERE X.k = C.k"""

Late = tuple[int, int, int, int]
"""The time of a record, its key, how far it is behind, and its micro-batch."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("select", "state", "into"),
    tiers(
        [
            (PAIRS, "files", "parquet"),
            (PAIRS, "files", "kafka"),
            (CHAIN, "files", "kafka"),
            (CHAIN, "spark", "parquet"),
        ]
    ),
    ids=["files", "topic", "chain", "chain in Spark's store"],
)
def test_late_records_are_in_a_sink_once(
    session: wjoin.Session, topics: Topics, tmp_path: Path, select: str, state: str, into: str
) -> None:
    """Each run is a micro-batch, and a start on the checkpoint; a partition of each topic stays empty."""
    chance, names = random.Random(5), NAMES if select == CHAIN else NAMES[:2]
    read = {name: topics.name(name) for name in names}
    gone = topics.name("lost")
    session.sql(f"SET wjoin.state = {state}")
    lost = f"kafka OPTIONS ({topics.options}, topic '{gone}') FORMAT JSON"
    if into == "parquet":
        lost = f"parquet OPTIONS (path '{tmp_path}/lost')"
    declared = f"""CREATE SINK lost USING {lost};
        CREATE SINK found USING parquet OPTIONS (path '{tmp_path}/found');"""
    for name, topic in read.items():
        declared += f"""CREATE STREAM {name} (n BIGINT, k INT, WATERMARK FOR n AS n - {DELAY}) USING kafka
            OPTIONS ({topics.options}, subscribe '{topic}') FORMAT JSON LATE ROWS INTO lost;"""
    late: Counter[Late] = Counter()
    seen: dict[str, int] = {}
    for run in range(RUNS):
        for name, topic in read.items():
            rows = [(60 * run + chance.randint(-60, 60), chance.randint(0, 3)) for _ in range(40)]
            for partition in (0, 1):
                records = [json.dumps({"n": n, "k": k}) for n, k in rows[partition::2]]
                topics.write(topic, records, partition=partition)
            mark = seen[name] - DELAY if name in seen else None
            late.update((n, k, mark - n, run) for n, k in rows if mark is not None and n < mark)
            seen[name] = max(seen.get(name, rows[0][0]), *(n for n, _ in rows))
        if run == 0:
            # A stream is read of topics that are there.
            session.run_script(declared)
        session.run_script(f"INSERT INTO found {select}", checkpoint=str(tmp_path / "checkpoints"))
    if into == "kafka":
        told = [json.loads(value or "") for _, value in topics.read(gone)]
    else:
        frame = session.sql("SELECT * FROM lost")
        assert isinstance(frame, DataFrame)
        told = [row.asDict() for row in frame.collect()]
    assert {each["late_for"] for each in told} == {"found"}
    assert Counter((each["n"], each["k"], each["late_by"], each["micro_batch"]) for each in told) == late
    assert len(late) > 20
