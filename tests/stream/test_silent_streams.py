"""Silent streams: IDLE AFTER lets the others go on, and --complete decides all that waits, exactly once."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wjoin
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.measured import silent_streams
from wjoin.queries.running import Running
from wjoin.testing.waiting import until

LEFT = "SELECT A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.k = B.k WINDOW (A, B) BETWEEN -2 AND 5"
HOUR = 3_600_000


@dataclass
class Case:
    """Streams of files below a folder, and a query over them into a sink."""

    session: wjoin.Session
    root: Path
    select: str = LEFT
    files: int = 0
    into: list[str] = field(default_factory=lambda: ["out"])
    folder: str = "checkpoints"

    def declare(self, **clauses: str) -> None:
        """Declare streams, each with a clause of its own, and a sink."""
        for name, clause in clauses.items():
            (self.root / name).mkdir(exist_ok=True)
            self.session.sql(
                f"""CREATE OR REPLACE STREAM {name} (n BIGINT, k INT, j INT, WATERMARK FOR n AS n - 20)
                    USING parquet OPTIONS (path '{self.root / name}', maxFilesPerTrigger '1') {clause}"""
            )
        for name in self.into:
            self.session.sql(
                f"CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{self.root / name}')"
            )

    def write(self, stream: str, *rows: tuple[int, int]) -> None:
        """Write a file of rows of a stream: times and keys."""
        self.files += 1
        times, keys = zip(*rows, strict=True)
        table = pa.table(
            {"n": pa.array(times, pa.int64()), **dict.fromkeys("kj", pa.array(keys, pa.int32()))}
        )
        pq.write_table(table, self.root / stream / f"{self.files}.parquet")

    def run(self, *, complete: bool = False) -> Counter[Any]:
        """Run the query over what is there, and return all that it has written."""
        statements = [f"INSERT INTO {name} {self.select}" for name in self.into]
        text = statements[0]
        if len(statements) > 1:
            text = f"EXECUTE STATEMENT SET BEGIN {'; '.join(statements)}; END"
        self.session.run_script(text, checkpoint=str(self.root / self.folder), complete=complete)
        return self.found

    @property
    def found(self) -> Counter[Any]:
        """What each of the sinks has committed."""
        found, *others = (self._found(name) for name in self.into)
        assert all(each == found for each in others)
        return found

    def _found(self, name: str) -> Counter[Any]:
        rows = self.session.spark.read.parquet(str(self.root / name)).collect()
        return Counter(tuple(row) for row in rows)

    @property
    def checkpoint(self) -> Path:
        (found,) = (self.root / self.folder).iterdir()
        return found

    def uncommit(self, number: int, *, sink: bool) -> None:
        """Take back that a micro-batch is committed, as after a crash; ``sink``: also in the sink."""
        logs = [
            self.checkpoint / "commits",
            *([self.root / self.into[0] / "_spark_metadata"] if sink else []),
        ]
        for log in logs:
            (log / str(number)).unlink()
            (log / f".{number}.crc").unlink(missing_ok=True)


@pytest.fixture
def case(session: wjoin.Session, tmp_path: Path) -> Case:
    return Case(session, tmp_path)


@pytest.mark.long
def test_a_silent_stream_lets_rows_without_a_partner_go(case: Case) -> None:
    """Each run is a start on the checkpoint."""
    case.declare(one="", two="IDLE AFTER INTERVAL 1 MILLISECOND")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1))
    assert case.run() == Counter([(1, 3)])
    case.write("one", (1000, 1))
    assert case.run() == Counter([(1, 3), (2, None)])
    case.write("two", (500, 1), (979, 1), (980, 1), (1001, 1))
    with pytest.warns(WJoinWarning, match=r"WJ803.*2 late rows \(2 of B\)"):
        assert case.run() == Counter([(1, 3), (2, None), (1000, 1001)])


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_a_repeated_micro_batch_judges_by_the_clock_of_the_log(case: Case, home: str) -> None:
    """And a query that has begun without the clause goes on with it: the stream is silent from then on."""
    case.session.sql(f"SET wjoin.state = {home}")
    case.declare(one="", two="")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1))
    case.run()
    case.declare(one="", two="IDLE AFTER 1 HOUR")
    case.write("one", (1000, 1))
    case.run()
    case.write("one", (1001, 1))
    assert case.run() == Counter([(1, 3)])
    case.uncommit(2, sink=False)
    for each in case.checkpoint.glob("wjoin/state/*/*/*/2.manifest"):
        each.unlink()
    log = case.checkpoint / "offsets" / "2"
    version, body, *offsets = log.read_text().split("\n")
    told = json.loads(body)
    told["batchTimestampMs"] += HOUR
    log.write_text("\n".join([version, json.dumps(told), *offsets]))
    (log.parent / ".2.crc").unlink(missing_ok=True)
    (case.root / "out" / "_spark_metadata" / "2").unlink()
    (case.root / "out" / "_spark_metadata" / ".2.crc").unlink(missing_ok=True)
    assert case.run() == Counter([(1, 3), (2, None)])


@pytest.mark.long
def test_a_query_that_runs_on_tells_who_waits_for_a_silent_stream(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the clause, by a warning and in its line; with it, the others go on while it runs."""
    monkeypatch.setattr(silent_streams, "QUIET_SECONDS", 3.0)
    times = itertools.count(100)

    def start() -> Running:
        case.session.run_script(
            f"INSERT INTO out {case.select}", once=False, checkpoint=str(case.root / "checkpoints")
        )
        *_, running = case.session.running
        return running

    def says(running: Running, words: str) -> bool:
        case.write("one", (next(times), 1))
        return words in running.line()

    case.declare(one="", two="")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1))
    running = start()
    with pytest.warns(
        WJoinWarning, match=r"WJ823.*in the query out A waits for B, which has sent nothing since"
    ):
        until(
            partial(says, running, "A waits for B, which has sent nothing since 20"),
            "who waits",
            every_seconds=1,
        )
    running.stop()
    assert case.found == Counter([(1, 3)])
    case.declare(one="", two="IDLE AFTER 2 SECONDS")
    running = start()
    until(partial(says, running, "B has sent nothing since 20"), "who is silent", every_seconds=1)
    until(lambda: (2, None) in case.found, "the row without a partner", every_seconds=1)
    assert "waits for" not in running.line()
    case.write("two", (next(times) + 100, 9))
    until(lambda: "silent" not in running.line() and "sent nothing" not in running.line(), "it sends again")
    running.stop()


@pytest.mark.parametrize("sink", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_completed_run_has_all_results_once_through_a_crash(case: Case, sink: bool) -> None:
    """The crash comes before the sink has the results, or after it; the next run does not ask for the end."""
    case.declare(one="", two="")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1))
    assert case.run(complete=True) == Counter([(1, 3), (2, None)])
    case.uncommit(1, sink=sink)
    case.write("one", (40, 4))
    assert case.run() == Counter([(1, 3), (2, None)])
    assert not list(case.checkpoint.glob("offsets/3"))


@pytest.mark.long
def test_a_query_goes_on_after_a_completed_run(case: Case) -> None:
    case.declare(one="", two="")
    case.write("one", (1, 1), (2, 2))
    assert case.run(complete=True) == Counter([(1, None), (2, None)])
    case.write("one", (40, 4))
    # Of what waits for a partner still, 40 is too new to have been decided: rows up to 7 are late now.
    case.write("two", (7, 2), (8, 2), (41, 4))
    with pytest.warns(WJoinWarning, match=r"WJ803.*1 late row \(1 of B\)"):
        assert case.run() == Counter([(1, None), (2, None), (40, 41)])
    case.write("one", (50, 5))
    assert case.run(complete=True) == Counter([(1, None), (2, None), (40, 41), (50, None)])
    assert case.run(complete=True) == Counter([(1, None), (2, None), (40, 41), (50, None)])


def several(case: Case) -> None:
    case.into = ["out", "other"]


def full(case: Case) -> None:
    case.select = LEFT.replace("LEFT", "FULL")


def anti(case: Case) -> None:
    case.select = LEFT.replace("LEFT", "ANTI").replace("B.n AS b", "NULL AS b")


@pytest.mark.long
@pytest.mark.parametrize("changed", [several, full, anti])
def test_what_else_a_completed_run_decides(case: Case, changed: Callable[[Case], None]) -> None:
    changed(case)
    case.declare(one="", two="")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1), (4, 9))
    extra = {full: [(1, 3), (2, None), (None, 4)], anti: [(2, None)]}
    assert case.run(complete=True) == Counter(extra.get(changed, [(1, 3), (2, None)]))


@pytest.mark.long
def test_statements_of_a_set_share_a_silent_stream(case: Case) -> None:
    """And each of them has a state of its own where it cannot share the join."""
    inner = LEFT.replace("LEFT ", "")
    case.declare(one="", two="IDLE AFTER 1 MILLISECOND")
    for name in ("first", "second"):
        case.session.sql(f"CREATE SINK {name} USING parquet OPTIONS (path '{case.root / name}')")
    text = f"""EXECUTE STATEMENT SET BEGIN INSERT INTO first {inner};
               INSERT INTO second {inner} WHERE A.k > 0; INSERT INTO out {LEFT}; END"""
    run = partial(case.session.run_script, text, checkpoint=str(case.root / "checkpoints"))
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1))
    run()
    case.write("one", (1000, 1))
    run()
    case.write("two", (500, 1), (1001, 1))
    with pytest.warns(WJoinWarning, match="WJ803"):
        run()
    assert case.found == Counter([(1, 3), (2, None), (1000, 1001)])
    case.into = ["first", "second"]
    assert case.found == Counter([(1, 3), (1000, 1001)])


@pytest.mark.long
def test_joins_over_joins_are_decided_in_the_same_micro_batch(case: Case) -> None:
    case.select = """SELECT X.n AS a, C.n AS b FROM (SELECT A.n, A.k FROM one A, two B
                     WINDOW (A, B) = 3 WHERE A.k = B.k AND A.j = B.j) X LEFT JOIN three C ON X.k = C.k
                     WINDOW (X, C) = 4"""
    case.declare(one="", two="", three="")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1), (4, 2))
    case.write("three", (5, 1))
    assert case.run(complete=True) == Counter([(1, 5), (2, None)])


@pytest.mark.long
def test_a_run_with_state_in_sparks_store_is_completed(case: Case) -> None:
    """And goes on; and a silent stream lets others go there, too."""
    case.session.sql("SET wjoin.state = spark")
    case.declare(one="", two="IDLE AFTER INTERVAL 1 MILLISECOND")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1))
    assert case.run(complete=True) == Counter([(1, 3), (2, None)])
    case.uncommit(1, sink=False)
    assert case.run() == Counter([(1, 3), (2, None)])
    case.write("one", (1000, 1))
    case.write("two", (6, 2))
    with pytest.warns(WJoinWarning, match=r"WJ803.*1 late row \(1 of B\)"):
        assert case.run() == Counter([(1, 3), (2, None)])


FULL_AFTER = """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k FULL JOIN three C
    ON A.j = C.j WINDOW (A, B) BETWEEN -2 AND 5 AND WINDOW (A, C) BETWEEN -3 AND 4"""


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_a_full_join_after_another_join_is_completed_and_goes_on(case: Case, home: str) -> None:
    """Rows of the streams before it that could be a partner of a decided row are late where they enter."""
    case.session.sql(f"SET wjoin.state = {home}")
    case.select = FULL_AFTER
    case.declare(one="", two="", three="")
    case.write("one", (30, 1))
    case.write("two", (31, 1))
    case.write("three", (29, 1), (35, 2))
    done = [(30, 31, 29), (None, None, 35)]
    assert case.run(complete=True) == Counter(done)
    # As after a crash that came before the end was committed.
    case.uncommit(1, sink=False)
    assert case.run() == Counter(done)
    # Up to 38 a row of A could be a partner of 35, and B of that up to 43. C up to 34 could be one of 30.
    case.write("one", (38, 2), (39, 3))
    case.write("two", (43, 3), (44, 3))
    case.write("three", (34, 1), (40, 4))
    with pytest.warns(WJoinWarning, match=r"WJ803.*3 late rows \(1 of A, 1 of B, 1 of C\)"):
        assert case.run() == Counter(done)
    done += [(39, 44, None), (None, None, 40)]
    assert case.run(complete=True) == Counter(done)


@pytest.mark.long
def test_what_cannot_be_completed_is_refused(case: Case) -> None:
    case.declare(one="", two="")
    with pytest.raises(WJoinError, match=r"WJ727.*a SELECT over streams has no checkpoint"):
        case.session.run_script(LEFT, complete=True)


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_a_tree_goes_on_without_silent_streams(case: Case, home: str) -> None:
    """In files the first join learns that the stream of the second one has gone on."""
    case.session.sql(f"SET wjoin.state = {home}")
    case.select = FULL_AFTER.replace("FULL", "LEFT")
    case.declare(one="IDLE AFTER 1 MILLISECOND", two="IDLE AFTER 1 MILLISECOND", three="")
    case.write("one", (1, 1), (2, 2))
    case.write("two", (3, 1))
    case.write("three", (4, 1))
    assert case.run() == Counter([(1, 3, 4)])
    for time in (1000, 1001):
        case.write("three", (time, 9))
        case.run()
    found = [(1, 3, 4), *([(2, None, None)] if home == "files" else [])]
    assert case.found == Counter(found)


@pytest.mark.long
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("home", ["files", "spark"])
def test_two_stages_go_on_without_a_silent_stream(case: Case, home: str, moved: bool) -> None:
    """In files the first stage learns that a stream of it has gone on with one that enters later.

    Also where the checkpoint is moved to another number of workers in the meantime.
    """
    case.session.sql(f"SET wjoin.state = {home}")
    case.select = """SELECT A.n AS a, C.n AS b FROM one A, two B, three C WINDOW = 5
                     WHERE A.k = B.k AND B.j = C.j"""
    case.declare(one="IDLE AFTER 1 MILLISECOND", two="IDLE AFTER 1 MILLISECOND", three="")
    for name in ("one", "two", "three"):
        case.write(name, (1, 1))
    assert case.run() == Counter([(1, 1)])
    case.write("three", (1000, 1))
    case.run()
    case.write("one", (979, 1), (999, 1))
    case.write("two", (979, 1), (1001, 1))
    before = case.session.spark.conf.get("spark.sql.shuffle.partitions")
    if moved:
        old, new = (str(case.root / name) for name in ("checkpoints", "moved"))
        case.session.repartition(f"INSERT INTO out {case.select}", old, new, 3)
        case.folder = "moved"
        case.session.spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        # 979 is late where the streams have gone on.
        with pytest.warns(WJoinWarning, match=r"WJ803.*2 late rows") if home == "files" else nullcontext():
            assert case.run() == Counter([(1, 1), (999, 1000)])
    finally:
        case.session.spark.conf.set("spark.sql.shuffle.partitions", str(before))


def test_idle_after_is_shown_and_refused(case: Case) -> None:
    case.declare(one="", two="IDLE AFTER '90 seconds'")
    shown = case.session.sql("SHOW CREATE STREAM two").collect()[0][0]
    assert shown.endswith("IDLE AFTER 90 SECONDS")
    described = case.session.sql("DESCRIBE STREAM two").collect()
    assert "silent after 1 min 30 s without a row" in described[0].comment
    explained = case.session.explain(LEFT)
    assert "B = two: event time n, delay 20, silent after 1 min 30 s without a row" in explained
    frame = case.session.spark.createDataFrame([(1,)], "n INT")
    with pytest.raises(WJoinError, match="WJ110"):
        case.session.stream("s", frame, event_time="n", idle_after="0 seconds")
    case.session.stream("s", frame, event_time="n", idle_after="5 seconds")
    assert case.session.declarations.stream("s").delays["n"].idle_after == 5_000_000
    with pytest.raises(WJoinError, match=r"WJ504.*IDLE AFTER"):
        case.session.explain(
            "SELECT /*+ PLAN(NATIVE) */ A.n FROM one A, two B WINDOW (A, B) = 5 WHERE A.k = B.k"
        )
