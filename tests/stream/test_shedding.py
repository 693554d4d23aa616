"""Load shedding: which rows go, that a repeated micro-batch sheds the same ones, limits, and what is told."""

import json
import os
import random
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

import wjoin
from tests.tiers import tiers
from wjoin import progress
from wjoin.executor.shedding import kept_codes
from wjoin.grammar.errors import WJoinError
from wjoin.measured.reports import recent_reports

SECOND = 1_000_000
EPOCH = 1_700_000_000 * SECOND

FIXED = {
    "wjoin.shedding": "linear",
    "wjoin.shedding_base": "0.4",
    "wjoin.utilization": "0.000000000001 0.000000000002 0.000000000003 0.000000000003",
    "wjoin.memory": "1t",
}
"""Settings with which a share of 0.4 is shed as soon as there is any state: after the first micro-batch."""

KEYED = "FROM a A, b B WINDOW (A, B) = 3 SECONDS WHERE A.k = B.k"
KEYLESS = "FROM a A, b B WINDOW (A, B) = 1 SECOND WHERE A.v + B.v > 15"
CASCADE = """FROM a A, b B, c C WINDOW (A, B) = 3 SECONDS AND WINDOW (B, C) = 3 SECONDS
WHERE A.k = B.k AND B.v = C.v AND A.v < 3"""


def write(root: Path, names: str, files: int, rows: int, seed: int = 1) -> None:
    """Write a file of each stream for each micro-batch of 10 s of event time."""
    chance = np.random.default_rng(seed)
    for name in names:
        (root / name).mkdir(exist_ok=True)
        for number in range(files):
            times = EPOCH + number * 10 * SECOND + np.sort(chance.integers(0, 10 * SECOND, rows))
            columns = {
                "id": number * rows + np.arange(rows),
                "k": (chance.random(rows) ** 2 * 300).astype(np.int64),
                "v": chance.integers(0, 10, rows),
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            }
            path = root / name / f"{number:05}.parquet"
            pq.write_table(pa.table(columns), path)
            os.utime(path, (EPOCH // SECOND + number,) * 2)


def declare(session: wjoin.Session, root: Path, names: str, **options: str) -> None:
    """Declare streams, each with the ``options`` of its name in SQL."""
    for name in names:
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP) USING parquet
            OPTIONS (path '{root}/{name}', maxFilesPerTrigger '1'{options.get(name, "")})
            WATERMARK ts DELAY OF INTERVAL 0 SECONDS"""
        )
    session.sql(f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{root}/found')")


def ask(session: wjoin.Session, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        session.sql(f"SET {name} = '{value}'")


def run(session: wjoin.Session, root: Path, query: str, columns: str = "A.id AS a, B.id AS b") -> None:
    script = f"INSERT INTO found SELECT {columns} {query}"
    session.run_script(script, once=True, checkpoint=str(root / "checkpoints"))


def written(root: Path, folder: str = "found") -> Counter[tuple[Any, ...]]:
    table = pq.read_table(wjoin.committed_files(root / folder))
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def oracle(root: Path, query: str, kept: dict[str, str]) -> Counter[tuple[Any, ...]]:
    """Return what DuckDB makes of a query over the rows of each stream that satisfy a condition."""
    base = duckdb.connect()
    for name, condition in kept.items():
        base.execute(f"CREATE TABLE {name} AS FROM read_parquet('{root}/{name}/*.parquet') WHERE {condition}")
    return Counter(base.execute(query).fetchall())


def keys(root: Path, names: str, column: str, ratio: float, salt: int) -> str:
    """Return in SQL which values of a column are kept."""
    files = [f"'{root}/{name}/*.parquet'" for name in names]
    found = duckdb.sql(f"SELECT DISTINCT {column} FROM read_parquet([{', '.join(files)}])").fetchall()
    values = np.array(sorted(value for (value,) in found), np.int64)
    return ", ".join(map(str, values[kept_codes(values, ratio, salt)]))


NEAR = """abs(epoch_us(A.ts) - epoch_us(B.ts)) <= 3000000"""
KEYED_ORACLE = f"SELECT A.id, B.id FROM a A, b B WHERE A.k = B.k AND {NEAR}"


def shed_after(number: int, kept: str, column: str = "k") -> str:
    """Return which rows are kept where the micro-batches after ``number`` shed."""
    return f"(epoch_us(ts) < {EPOCH + (number + 1) * 10 * SECOND} OR {column} IN ({kept}))"


def test_results_are_those_of_the_rows_whose_keys_are_kept(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "ab", files=5, rows=400)
    declare(session, tmp_path, "ab")
    ask(session, FIXED)
    run(session, tmp_path, KEYED)
    kept = shed_after(0, keys(tmp_path, "ab", "k", 0.4, 0))
    found = oracle(tmp_path, KEYED_ORACLE, {"a": kept, "b": kept})
    assert found
    assert written(tmp_path) == found


@pytest.mark.long
def test_each_key_of_a_cascade_is_judged(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "abc", files=4, rows=150)
    declare(session, tmp_path, "abc")
    ask(session, {**FIXED, "wjoin.plan": "multiway"})
    run(session, tmp_path, CASCADE, "A.id AS a, B.id AS b, C.id AS c")
    decision = last_decision(tmp_path)
    # Two streams meet on one key, the third meets them on the other.
    assert decision["lost"] == pytest.approx(1 - 0.6**2)
    whole = """SELECT A.id, B.id, C.id FROM a A, b B, c C WHERE A.k = B.k AND B.v = C.v AND A.v < 3
        AND abs(epoch_us(A.ts) - epoch_us(B.ts)) <= 3000000
        AND abs(epoch_us(B.ts) - epoch_us(C.ts)) <= 3000000"""
    orders = []
    for first, second in (("k", "v"), ("v", "k")):
        one, two = (keys(tmp_path, "abc", each, 0.4, salt) for each, salt in ((first, 0), (second, 2)))
        kept = {"k": shed_after(0, one if first == "k" else two), "v": ""}
        kept["v"] = shed_after(0, two if first == "k" else one, "v")
        by = {"a": "k", "b": first, "c": "v"}
        orders.append(oracle(tmp_path, whole, {name: kept[column] for name, column in by.items()}))
    assert written(tmp_path) in orders


def last_decision(root: Path) -> dict[str, Any]:
    folder = root / "checkpoints/found/wjoin/state/0/shed"
    newest = max(folder.iterdir(), key=lambda each: int(each.name))
    decision: dict[str, Any] = json.loads(newest.read_text())
    return decision


@pytest.mark.long
def test_rows_without_a_key_are_judged_by_themselves(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "ab", files=4, rows=300)
    declare(session, tmp_path, "ab")
    ask(session, FIXED)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run(session, tmp_path, KEYLESS)
        lost = told_share(session, told)
    whole = oracle(
        tmp_path,
        f"SELECT A.id, B.id FROM a A, b B WHERE A.v + B.v > 15 AND {NEAR.replace('3000000', '1000000')}",
        {"a": "true", "b": "true"},
    )
    found = written(tmp_path)
    assert found <= whole
    rows = {place: {pair[place] for pair in whole if pair[place] >= 300} for place in range(2)}
    for place in range(2):
        # A row is there with all its results or with none, of rows that are there.
        there = {pair[place] for pair in found}
        assert 0.5 < len(there & rows[place]) / len(rows[place]) < 0.7
        assert found == Counter(
            {
                pair: count
                for pair, count in whole.items()
                if all(pair[each] in {one[each] for one in found} for each in range(2))
            }
        )
    truth = 1 - found.total() / whole.total()
    assert lost[1] <= truth <= lost[2]


def told_share(session: wjoin.Session, told: Sequence[warnings.WarningMessage]) -> tuple[float, float, float]:
    """Return the share lost, its least and its most, as the last warning tells them."""
    wjoin.measured.followed.settle()
    texts = [str(each.message) for each in told if "WJ819" in str(each.message)]
    assert texts
    words = texts[-1].split("about ")[1].replace(" % of the results lost,", "").replace(" to", "").split()
    lost, least, most = (float(each) / 100 for each in words[:3])
    return lost, least, most


@pytest.mark.parametrize("seed", tiers(range(6), long=range(6)))
def test_the_true_loss_is_inside_the_interval(session: wjoin.Session, tmp_path: Path, seed: int) -> None:
    write(tmp_path, "ab", files=4, rows=500, seed=seed)
    declare(session, tmp_path, "ab")
    ask(session, FIXED)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run(session, tmp_path, KEYED)
        _, least, most = told_share(session, told)
    whole = oracle(tmp_path, KEYED_ORACLE, {"a": "true", "b": "true"})
    # What is told is of the time in which rows are shed: all but the first micro-batch.
    late = EPOCH + 10 * SECOND
    first = oracle(
        tmp_path,
        f"{KEYED_ORACLE} AND greatest(epoch_us(A.ts), epoch_us(B.ts)) < {late}",
        {"a": "true", "b": "true"},
    ).total()
    truth = 1 - (written(tmp_path).total() - first) / (whole.total() - first)
    assert least - 0.001 <= truth <= most + 0.001


class StoppedError(Exception):
    """What a sink of the user's fails with."""


def started(rows: DataFrame, checkpoint: Path, found: Counter[Any], fails_at: int | None = None) -> Any:
    """Run a query that a user starts; add to ``found`` what micro-batches bring, but for one that fails."""

    def take(batch: DataFrame, number: int) -> None:
        collected = [tuple(row) for row in batch.collect()]
        if number == fails_at:
            raise StoppedError
        found.update(collected)

    query = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    return query.trigger(availableNow=True).start()


@pytest.mark.long
@pytest.mark.parametrize("then", [{"wjoin.shedding": "off"}, {"wjoin.shedding_base": "0.9"}])
def test_a_repeated_micro_batch_sheds_the_same_rows(
    session: wjoin.Session, tmp_path: Path, then: dict[str, str]
) -> None:
    write(tmp_path, "ab", files=4, rows=300)
    declare(session, tmp_path, "ab")
    ask(session, {**FIXED, "wjoin.state": "files"})
    found: Counter[Any] = Counter()
    select = f"SELECT A.id AS a, B.id AS b {KEYED}"
    failing = started(session.sql(select), tmp_path / "checkpoint", found, fails_at=2)
    with pytest.raises(StreamingQueryException):
        failing.awaitTermination(120)
    # The micro-batch that failed is decided; only the last one goes by the new settings.
    ask(session, then)
    assert started(session.sql(select), tmp_path / "checkpoint", found).awaitTermination(120)
    early, last = (f"epoch_us(ts) {sign} {EPOCH + 30 * SECOND}" for sign in ("<", ">="))
    kept = keys(tmp_path, "ab", "k", 0.4, 0)
    ratio = 0.0 if "wjoin.shedding" in then else 0.9
    after = keys(tmp_path, "ab", "k", ratio, 0)
    condition = f"({early} AND {shed_after(0, kept)}) OR ({last} AND k IN ({after}))"
    assert found == oracle(tmp_path, KEYED_ORACLE, {"a": condition, "b": condition})


@pytest.mark.long
def test_the_option_of_a_stream_is_before_the_setting(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "ab", files=3, rows=200)
    declare(session, tmp_path, "ab", b=", wjoin.shedding 'OFF'")
    ask(session, FIXED)
    run(session, tmp_path, KEYED)
    assert last_decision(tmp_path)["ratios"] == {"0": pytest.approx(0.4), "1": 0.0}
    kept = shed_after(0, keys(tmp_path, "ab", "k", 0.4, 0))
    assert written(tmp_path) == oracle(tmp_path, KEYED_ORACLE, {"a": kept, "b": "true"})
    described = {row["col_name"]: row["comment"] for row in session.sql("DESCRIBE STREAM b").collect()}
    assert "shedding: off" in described["ts"]
    with pytest.raises(WJoinError) as refused:
        declare(session, tmp_path, "a", a=", wjoin.shedding 'cubic'")
    assert refused.value.code == "WJ603"


@pytest.mark.long
def test_counts_are_of_each_stream_and_micro_batch(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "ab", files=3, rows=200)
    declare(session, tmp_path, "ab")
    ask(session, {**FIXED, "wjoin.state": "files"})
    found: Counter[Any] = Counter()
    query = started(session.sql(f"SELECT A.id AS a, B.id AS b {KEYED}"), tmp_path / "checkpoint", found)
    assert query.awaitTermination(120)
    reports = [progress.read(each) for each in recent_reports(query)]
    reports = [each for each in reports if each.rows_in]
    kept = keys(tmp_path, "ab", "k", 0.4, 0)
    for number, report in enumerate(reports):
        for alias, name in (("A", "a"), ("B", "b")):
            path = tmp_path / name / f"{number:05}.parquet"
            gone = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE k NOT IN ({kept})").fetchall()[0][0]
            assert report.shed[alias] == (gone if number else 0)
            assert report.rows_in[alias] == 200
    assert [each.results_lost[0] for each in reports] == pytest.approx([0, 0.4, 0.4])


@pytest.mark.long
@pytest.mark.parametrize(("name", "limit"), [("wjoin.memory", "20k"), ("wjoin.disk", "40k")])
def test_a_state_above_its_limit_ends_the_query(
    session: wjoin.Session, tmp_path: Path, name: str, limit: str
) -> None:
    write(tmp_path, "ab", files=6, rows=2000)
    declare(session, tmp_path, "ab")
    session.sql(f"SET {name} = '{limit}'")
    with pytest.raises(WJoinError, match=f"{name} allows") as ended:
        run(session, tmp_path, KEYED)
    assert ended.value.code == "WJ725"
    # It goes on where it was once there is room.
    session.sql(f"SET {name} = '1g'")
    run(session, tmp_path, KEYED)
    assert written(tmp_path) == oracle(tmp_path, KEYED_ORACLE, {"a": "true", "b": "true"})


@pytest.mark.long
def test_a_state_at_its_limit_sheds(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "ab", files=6, rows=2000)
    declare(session, tmp_path, "ab")
    ask(session, {"wjoin.shedding": "quadratic", "wjoin.memory": "30k"})
    run(session, tmp_path, KEYED)
    found = written(tmp_path)
    whole = oracle(tmp_path, KEYED_ORACLE, {"a": "true", "b": "true"})
    assert found < whole
    assert max(found.values()) == 1
    assert found.total() < 0.9 * whole.total()


@pytest.mark.parametrize(
    ("settings", "hint", "why"),
    [({}, "/*+ PLAN(NATIVE) */", "Spark's own joins"), ({"wjoin.state": "spark"}, "", "Spark's store")],
)
def test_what_cannot_shed_says_so(
    session: wjoin.Session, tmp_path: Path, settings: dict[str, str], hint: str, why: str
) -> None:
    write(tmp_path, "ab", files=1, rows=10)
    declare(session, tmp_path, "ab")
    ask(session, {"wjoin.shedding": "linear", **settings})
    with pytest.raises(WJoinError, match=why) as refused:
        run(session, tmp_path, KEYED, f"{hint} A.id AS a")
    assert refused.value.code == "WJ724"
    assert refused.value.span is not None


@pytest.mark.long
def test_tables_are_never_shed(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "ab", files=2, rows=100)
    for name in "ab":
        session.stream(name, session.spark.read.parquet(str(tmp_path / name)), "ts")
    ask(session, FIXED)
    found = Counter(tuple(row) for row in session.sql(f"SELECT A.id, B.id {KEYED}").collect())
    assert found == oracle(tmp_path, KEYED_ORACLE, {"a": "true", "b": "true"})


@pytest.mark.long
def test_a_statement_set_sheds(session: wjoin.Session, tmp_path: Path) -> None:
    write(tmp_path, "ab", files=3, rows=200)
    declare(session, tmp_path, "ab")
    session.sql(f"CREATE OR REPLACE SINK more USING json OPTIONS (path '{tmp_path}/more')")
    ask(session, FIXED)
    script = f"""EXECUTE STATEMENT SET two BEGIN
        INSERT INTO found SELECT A.id AS a, B.id AS b {KEYED};
        INSERT INTO more SELECT B.id AS b FROM a A, b B WINDOW (A, B) = 1 SECOND WHERE A.k = B.k AND B.v > 5;
    END"""
    session.run_script(script, once=True, checkpoint=str(tmp_path / "checkpoints"))
    kept = shed_after(0, keys(tmp_path, "ab", "k", 0.4, 0))
    assert written(tmp_path) == oracle(tmp_path, KEYED_ORACLE, {"a": kept, "b": kept})


@pytest.fixture(autouse=True)
def own_warnings() -> Iterator[None]:
    """Let what is told of shed rows pass: most tests look at rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*WJ819", wjoin.WJoinWarning)
        yield


def random_codes(count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    chance = random.Random(3)
    return np.array([chance.getrandbits(63) for _ in range(count)], np.int64)


def test_what_is_kept_at_a_ratio_is_kept_at_a_lesser_one() -> None:
    for codes in (np.arange(10_000), random_codes(10_000)):
        before = kept_codes(codes, 0.0, 0)
        assert before.all()
        for ratio in (0.1, 0.5, 0.9, 1.0):
            kept = kept_codes(codes, ratio, 0)
            assert not (kept & ~before).any()
            assert abs(kept.mean() - (1 - ratio)) < 0.02
            before = kept
