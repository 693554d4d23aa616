"""Checkpoints written anew for other numbers of partitions and workers: nothing lost, nothing twice."""

import hashlib
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

import wjoin
from wjoin.checkpoints.repartition import Repartitioned
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import typed
from wjoin.parts.routes.route import Placement
from wjoin.planner.choose.layouts import Layout

pytestmark = pytest.mark.thorough

ROWS = 40
"""Rows of a file; a file holds two seconds of event time."""

NEAR = "abs(a.x - b.x) < 40"

DECLARED = """
CREATE STREAM {name} (n BIGINT, k STRING, m BIGINT, x BIGINT, ts TIMESTAMP) USING parquet
OPTIONS (path '{folder}/{name}', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 1 SECOND;
"""

SELECTS = {
    # Two stages, a key of strings, which is hashed, and one of numbers.
    "keyed": "SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a, b, c WINDOW = 3 SECONDS "
    "WHERE a.k = b.k AND b.m = c.m",
    "alone": f"SELECT a.n AS an, b.n AS bn FROM a, b WINDOW = 2 SECONDS WHERE {NEAR}",
    "psp": f"SELECT /*+ PLAN(PSP{{n}}) */ a.n AS an, b.n AS bn FROM a, b WINDOW = 2 SECONDS WHERE {NEAR}",
    "atr": f"SELECT /*+ PLAN(ATR{{n}}) */ a.n AS an, b.n AS bn FROM a, b WINDOW = 2 SECONDS WHERE {NEAR}",
    # More pairs than rows, which hops do not keep.
    "hops": f"SELECT /*+ PLAN(PSP{{n}}) */ a.n AS an, b.n AS bn, c.n AS cn FROM a, b, c WINDOW = 2 SECONDS "
    f"WHERE {NEAR} AND abs(b.x - c.x) < 40",
    "once": f"SELECT /*+ PLAN(PSP{{n}}) */ a.n AS an, b.n AS bn, c.n AS cn FROM a, b, c WINDOW = 2 SECONDS "
    f"WHERE {NEAR} AND abs(b.x - c.x) < 40 AND abs(a.x - c.x) < 60",
    "nested": "SELECT d.an, d.bn, c.n AS cn FROM (SELECT a.n AS an, b.n AS bn, a.m AS m, a.ts AS ts "
    f"FROM a, b WINDOW = 2 SECONDS WHERE {NEAR}) d, c WINDOW = 2 SECONDS WHERE d.m = c.m",
}

_CLOSE = "abs(epoch_us({}.ts) - epoch_us({}.ts)) <= {}"
_PAIRS = f"SELECT a.n, b.n FROM a, b WHERE {NEAR} AND {_CLOSE.format('a', 'b', 2_000_000)}"
ORACLES = {
    "keyed": "SELECT a.n, b.n, c.n FROM a, b, c WHERE a.k = b.k AND b.m = c.m AND "
    + " AND ".join(_CLOSE.format(*pair, 3_000_000) for pair in ("ab", "bc", "ac")),
    "alone": _PAIRS,
    "psp": _PAIRS,
    "atr": _PAIRS,
    "hops": f"SELECT a.n, b.n, c.n FROM a, b, c WHERE {NEAR} AND abs(b.x - c.x) < 40 AND "
    + " AND ".join(_CLOSE.format(*pair, 2_000_000) for pair in ("ab", "bc", "ac")),
    "once": f"SELECT a.n, b.n, c.n FROM a, b, c WHERE {NEAR} AND abs(b.x - c.x) < 40 AND abs(a.x - c.x) < 60 "
    "AND " + " AND ".join(_CLOSE.format(*pair, 2_000_000) for pair in ("ab", "bc", "ac")),
    "nested": f"SELECT a.n, b.n, c.n FROM a, b, c WHERE {NEAR} AND a.m = c.m AND "
    + " AND ".join(_CLOSE.format(*pair, 2_000_000) for pair in ("ab", "ac")),
}


class Queries:
    """Runs queries over streams of files in one folder, each into a sink of its own name."""

    def __init__(self, session: wjoin.Session, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.files = 0
        for name in "abc":
            (folder / name).mkdir()

    def script(self, *names: str, n: str = "") -> str:
        """Return the script of some queries; ``n`` stands in the hint PLAN."""
        declared = "".join(DECLARED.format(name=name, folder=self.folder) for name in "abc")
        declared = declared.replace("CREATE", "CREATE OR REPLACE")
        for name in names:
            sink = f"CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{self.folder}/out/{name}')"
            declared += f"{sink};\nINSERT INTO {name} {SELECTS[name].replace('{n}', n)};\n"
        return declared

    def more(self) -> None:
        """Put a file into each stream."""
        for seed, name in enumerate("abc"):
            numbers = range(self.files * ROWS, (self.files + 1) * ROWS)
            rows = {
                "n": pa.array(numbers, pa.int64()),
                "k": [f"key {(each * 7 + seed) % 5}" for each in numbers],
                "m": pa.array([(each * 3 + seed) % 4 for each in numbers], pa.int64()),
                "x": pa.array([each * (11 + seed) % 1000 for each in numbers], pa.int64()),
                "ts": pa.array(
                    [1_700_000_000_000_000 + each * 50_000 for each in numbers], pa.timestamp("us", "UTC")
                ),
            }
            path = self.folder / name / f"{self.files:03}.parquet"
            pq.write_table(pa.table(rows), path)
            os.utime(path, (1_700_000_000 + self.files,) * 2)
        self.files += 1

    def run(self, checkpoints: str, partitions: int, script: str) -> None:
        """Work off what there is."""
        self.session.spark.conf.set("spark.sql.shuffle.partitions", partitions)
        self.session.run_script(script, checkpoint=str(self.folder / checkpoints))

    def repartition(self, old: str, new: str, partitions: int, script: str) -> list[Repartitioned]:
        return self.session.repartition(script, str(self.folder / old), str(self.folder / new), partitions)

    def are_right(self, *names: str, oracles: Mapping[str, str] = ORACLES) -> None:
        """Compare all that was written with what DuckDB finds over all files."""
        with duckdb.connect() as connection:
            for name in "abc":
                connection.execute(
                    f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{self.folder}/{name}/*.parquet')"
                )
            for name in names:
                expected = Counter(connection.execute(oracles[name]).fetchall())
                over_files = sum(len({n // ROWS for n in row}) > 1 for row in expected)
                assert over_files > 20, "what is kept matters"
                files = wjoin.committed_files(self.folder / "out" / name)
                written = connection.execute("SELECT * FROM read_parquet($1)", [files]).fetchall()
                assert Counter(written) == expected, name


@pytest.fixture(params=["files", "spark"])
def queries(session: wjoin.Session, tmp_path: Path, request: pytest.FixtureRequest) -> Queries:
    """The streams, and a session whose queries keep their state in one place or the other."""
    session.sql(f"SET wjoin.state = {request.param}")
    return Queries(session, tmp_path)


def tree(folder: Path) -> dict[str, str]:
    """Return the content of a folder, as digests by path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


TWO = "$0 [] x $1 []"


def layout(checkpoint: Path) -> list[Layout]:
    (found,) = (checkpoint / "wjoin" / "layouts").glob("*/*.txt")
    return [typed(Layout, each) for each in json.loads(found.read_text())["value"]]


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (("keyed",), (2, 3, 1)),
        (("nested",), (3, 2)),
        (("alone", "psp"), (2, 3)),
        (("atr",), (3, 1, 2)),
    ],
    ids=lambda each: "-".join(map(str, each)),
)
def test_queries_go_on_with_other_partitions(
    queries: Queries, tmp_path: Path, names: tuple[str, ...], steps: tuple[int, ...]
) -> None:
    script = queries.script(*names)
    queries.more()
    queries.more()
    queries.run("with-0", steps[0], script)
    for number, (before, after) in enumerate(itertools.pairwise(steps)):
        old, new = (tmp_path / f"with-{each}" for each in (number, number + 1))
        there = tree(old)
        done = queries.repartition(old.name, new.name, after, script)
        assert [(each.name, each.before, each.after) for each in done] == [(n, before, after) for n in names]
        assert [each.batch for each in done] == [1 + number] * len(names)
        assert tree(old) == there
        assert sorted(path.name for path in tmp_path.glob("with*")) == [
            f"with-{each}" for each in range(number + 2)
        ]
        queries.more()
        queries.run(new.name, after, script)
        queries.are_right(*names)
    queries.session.spark.conf.set("spark.sql.shuffle.partitions", steps[0])
    with pytest.raises(WJoinError, match="WJ703") as told:
        queries.session.run_script(script, checkpoint=str(tmp_path / f"with-{len(steps) - 1}"))
    assert "wjoin checkpoint repartition" in told.value.help


def test_another_number_of_slices_and_another_route(queries: Queries, tmp_path: Path) -> None:
    queries.more()
    queries.more()
    queries.run("first", 3, queries.script("psp", "atr", n=", 2"))
    assert layout(tmp_path / "first" / "psp") == [Layout(TWO, (Placement("psp", 2, 1198),))]
    more = queries.script("psp", "atr", n=", 3")
    queries.repartition("first", "second", 3, more)
    assert layout(tmp_path / "second" / "psp") == [Layout(TWO, (Placement("psp", 3, 1198),))]
    assert layout(tmp_path / "second" / "atr") == [Layout(TWO, (Placement("atr", 3, 8_000_000),))]
    queries.more()
    queries.run("second", 3, more)
    queries.are_right("psp", "atr")
    turned = more.replace("PSP", "both").replace("ATR", "PSP").replace("both", "ATR")
    queries.repartition("second", "third", 2, turned)
    assert layout(tmp_path / "third" / "psp") == [Layout(TWO, (Placement("atr", 3, 8_000_000),))]
    queries.more()
    queries.run("third", 2, turned)
    queries.are_right("psp", "atr")


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("hops", Layout("hops $0 $1 $2, $1 $0 $2, $2 $1 $0", (Placement("psp", 2, 1198),) * 2)),
        ("once", Layout("at once $0 $1 $2", (Placement("psp", 2, 1198), None))),
    ],
)
def test_hops_are_chosen_and_stay_in_hops(
    queries: Queries, tmp_path: Path, name: str, before: Layout
) -> None:
    queries.more()
    queries.more()
    queries.run("first", 3, queries.script(name, n=", 2"))
    assert layout(tmp_path / "first" / name) == [before]
    queries.more()
    queries.session.sql("SET wjoin.cores = 1")
    queries.run("first", 3, queries.script(name, n=", 2"))
    more = queries.script(name, n=", 3")
    queries.repartition("first", "second", 3, more)
    wider = tuple(each and replace(each, workers=3) for each in before.placements)
    assert layout(tmp_path / "second" / name) == [replace(before, placements=wider)]
    queries.more()
    queries.run("second", 3, more)
    queries.are_right(name)


SET = ("alone", "near", "keyed", "twin1", "twin2")
"""Statements of a set: the first two share a window join, the last two have each one that looks alike."""


def set_script(queries: Queries, *names: str, head: str = "EXECUTE STATEMENT SET some BEGIN") -> str:
    """Return a script with some statements in a set."""
    pairs = SELECTS["alone"]
    of_twins = pairs.replace("FROM a,", "FROM (SELECT * FROM a) a,")
    selects = {
        **SELECTS,
        "near": pairs.replace("2 SECONDS", "1 SECOND"),
        "twin1": of_twins,
        "twin2": of_twins,
    }
    sinks = "".join(
        f"CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{queries.folder}/out/{name}');\n"
        for name in names
    )
    inserts = "".join(f"INSERT INTO {name} {selects[name]};\n" for name in names)
    return f"{queries.script()}{sinks}{head}\n{inserts}{'END' if head else ''}"


def set_oracles() -> dict[str, str]:
    pairs = ORACLES["alone"]
    return {
        **ORACLES,
        "near": pairs.replace("2000000", "1000000"),
        "twin1": pairs,
        "twin2": pairs,
    }


def test_a_set_goes_on_with_other_partitions(queries: Queries, tmp_path: Path) -> None:
    script = set_script(queries, *SET)
    queries.more()
    queries.more()
    queries.run("old", 2, script)
    (done,) = queries.repartition("old", "new", 3, script)
    assert (done.name, done.before, done.after) == ("some", 2, 3)
    assert done.folder == str(tmp_path / "new" / "some")
    queries.more()
    with pytest.raises(WJoinError, match="WJ703"):
        queries.run("new", 2, script)
    queries.run("new", 3, script)
    queries.are_right(*SET, oracles=set_oracles())
    # The checkpoint of the set by itself, and other statements after it.
    fewer = set_script(queries, "keyed", "near")
    queries.repartition("new/some", "last/some", 2, script)
    queries.more()
    queries.run("last", 2, fewer)
    queries.are_right("keyed", "near", oracles=set_oracles())


def test_a_set_that_sharing_has_made_goes_on(queries: Queries, tmp_path: Path) -> None:
    script = set_script(queries, "alone", "near", head="")
    queries.session.sql("SET wjoin.sharing = auto")
    queries.more()
    queries.run("old", 3, script)
    (done,) = queries.repartition("old", "new", 1, script)
    assert done.folder == str(tmp_path / "new" / "set_alone")
    queries.more()
    queries.run("new", 1, script)
    queries.are_right("alone", "near", oracles=set_oracles())


def test_a_query_that_somebody_starts_keeps_its_numbers(queries: Queries, tmp_path: Path) -> None:
    numbers: list[int] = []
    found: Counter[tuple[int, int]] = Counter()

    def collect(rows: DataFrame, number: int) -> None:
        numbers.append(number)
        found.update((row.an, row.bn) for row in rows.collect())

    queries.run("none", 2, queries.script())
    select = SELECTS["alone"]
    for checkpoint, partitions in (("one", 2), ("two", 3)):
        if checkpoint == "two":
            (done,) = queries.repartition("one", "two", 3, select)
            assert (done.name, done.batch) == ("the SELECT", 1)
        queries.session.spark.conf.set("spark.sql.shuffle.partitions", partitions)
        queries.more()
        queries.more()
        writer = queries.session.sql(select).writeStream.foreachBatch(collect).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / checkpoint)).start().awaitTermination()
    assert numbers == [0, 1, 2, 3]
    with duckdb.connect() as connection:
        for name in "ab":
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{tmp_path}/{name}/*')")
        assert found == Counter(connection.execute(ORACLES["alone"]).fetchall())


@pytest.mark.parametrize("name", ["keyed", "hops", "once", "nested", "atr"])
def test_state_moves_from_files_to_sparks_store_and_back(
    session: wjoin.Session, tmp_path: Path, name: str
) -> None:
    queries = Queries(session, tmp_path)
    script = queries.script(name)
    queries.more()
    queries.more()
    for number, home in enumerate(["files", "spark", "files"]):
        session.sql(f"SET wjoin.state = {home}")
        if number:
            other = f"WJ720[\\s\\S]*wjoin.state is {home}, and the checkpoint"
            with pytest.raises(WJoinError, match=other):
                queries.run(f"with-{number - 1}", 2, script)
            if name == "nested" and home == "spark":
                with pytest.raises(WJoinError, match="WJ711"):
                    queries.repartition("with-0", "with-1", 2, script)
                return
            queries.repartition(f"with-{number - 1}", f"with-{number}", 2, script)
        queries.more()
        queries.run(f"with-{number}", 2, script)
        filed = (tmp_path / f"with-{number}" / name / "wjoin" / "state").is_dir()
        assert filed == (home == "files")
        queries.are_right(name)


def test_a_window_join_of_tables_beside_has_no_state_to_move(queries: Queries, tmp_path: Path) -> None:
    rows = {"g": [1, 1], "ts": pa.array([0, 0], pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), tmp_path / "table.parquet")
    for name in ("one", "other"):
        queries.session.read.parquet(str(tmp_path / "table.parquet")).createOrReplaceTempView(name)
    tables = "SELECT DISTINCT u.g FROM one u, other v WINDOW (u, v) = 1 SECOND WHERE u.g = v.g"
    script = queries.script("alone").replace("SELECT a.n", "SELECT an, bn FROM (SELECT a.n")
    script = script.rstrip(";\n") + f") JOIN ({tables}) ON g = 1;"
    queries.more()
    queries.more()
    queries.run("first", 2, script)
    queries.repartition("first", "second", 3, script)
    queries.more()
    queries.run("second", 3, script)
    queries.are_right("alone")


def test_a_stage_that_no_row_has_reached_moves_empty(queries: Queries, tmp_path: Path) -> None:
    script = queries.script("keyed")
    queries.more()
    for name in "ab":
        late, none = tmp_path / f"{name}.parquet", tmp_path / name / "none.parquet"
        (tmp_path / name / "000.parquet").rename(late)
        pq.write_table(pq.read_table(late).slice(0, 0), none)
        os.utime(none, (1_700_000_000,) * 2)
    queries.run("first", 2, script)
    # Only the stage that c enters has been reached.
    checkpoint = tmp_path / "first" / "keyed"
    if (checkpoint / "wjoin" / "state").is_dir():
        stages = (checkpoint / "wjoin" / "state" / "0" / each for each in "01")
        reached = [any(each.glob("*/*.manifest")) for each in stages]
    else:
        reader = queries.session.read.format("statestore").option("stateVarName", "state")
        loaded = (reader.option("operatorId", each).load(str(checkpoint)) for each in (0, 1))
        reached = [bool(each.count()) for each in loaded]
    assert sorted(reached) == [False, True]
    queries.repartition("first", "second", 3, script)
    for name in "ab":
        (tmp_path / f"{name}.parquet").rename(tmp_path / name / "000.parquet")
    queries.more()
    queries.run("second", 3, script)
    queries.are_right("keyed")


def test_what_cannot_be_moved_is_refused(queries: Queries, tmp_path: Path) -> None:
    script = queries.script("alone")
    counted = queries.script() + (
        f"CREATE OR REPLACE SINK counted USING parquet OPTIONS (path '{tmp_path}/out/counted');"
        "INSERT INTO counted SELECT window(MATCH_TIME(), '1 second').start AS w, count(*) AS c "
        f"FROM a, b WINDOW = 2 SECONDS WHERE {NEAR} GROUP BY window(MATCH_TIME(), '1 second');"
    )
    queries.more()
    queries.run("old", 2, script)
    queries.run("counted", 2, counted)

    def refused(code: str, old: str, new: str, text: str = script) -> WJoinError:
        there = sorted(path.name for path in tmp_path.iterdir())
        with pytest.raises(WJoinError, match=code) as told:
            queries.repartition(old, new, 3, text)
        assert sorted(path.name for path in tmp_path.iterdir()) == there
        return told.value

    assert "stateStoreSave" in refused("WJ711", "counted", "new", counted).message
    refused("WJ709", "old", "a")
    assert "holds no checkpoint" in refused("WJ710", "nowhere", "new").message
    refused("WJ710", "old", "new", queries.script("psp"))
    assert "window" in refused("WJ702", "old", "new", script.replace("2 SECONDS", "3 SECONDS")).message
    refused("WJ702", "old", "new", script.replace("a.n AS an, b.n", "a.n AS an, b.x"))
    several = queries.script("alone", "keyed")
    refused("WJ710", "old/alone", "new", several.replace("INTO keyed", "INTO alone"))
    shutil.copytree(tmp_path / "old", tmp_path / "old one")
    refused("WJ711", "old one", "new")
    (tmp_path / "old" / "alone" / "commits" / "0").unlink()
    error = refused("WJ708", "old", "new")
    assert "micro-batch 0" in error.message
    assert "INSERT INTO alone" in error.render()
    # With the commit the same checkpoint is good, given by itself as well.
    queries.run("old", 2, script)
    queries.repartition("old/alone", "new", 3, script)
    assert (tmp_path / "new" / "metadata").exists()
