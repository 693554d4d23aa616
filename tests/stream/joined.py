"""Streams of files that tests join, and the same rows in DuckDB."""

import contextlib
import re
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import wjoin

STREAMS = ("one", "two", "three")
COLUMNS = "n BIGINT, k INT, j INT, v INT, s STRING"
NAMES = ["n", "k", "j", "v", "s"]
TYPES = [pa.int64(), pa.int32(), pa.int32(), pa.int32(), pa.string()]
INSERT = "INSERT INTO {} VALUES (?, ?, ?, ?, ?)"
HOMES = {"one": "k", "two": "s", "three": "j"}
"""By which columns rows live at nodes; exact joins have them anywhere, and count by them where asked to."""

Row = tuple[int, int | None, int, int | None, str]


@dataclass
class Streams:
    """Streams of files below a folder, and the same rows in DuckDB."""

    session: wjoin.Session
    root: Path
    chance: Random
    oracle: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    step: int = 0
    delay: int = 1000
    names: Sequence[str] = STREAMS

    def __post_init__(self) -> None:
        for name in self.names:
            folder = self.root / name
            folder.mkdir()
            self.session.sql(
                f"""CREATE OR REPLACE STREAM {name} ({COLUMNS}, WATERMARK FOR n AS n - {self.delay})
                    USING parquet OPTIONS (path '{folder}', maxFilesPerTrigger '1')
                    {"HOME BY " + HOMES[name] if name in HOMES else ""}"""
            )
            self.oracle.execute(f"CREATE TABLE {name} ({COLUMNS.replace('STRING', 'VARCHAR')})")

    def arrive(self, files: int, rows: int = 25) -> None:
        """Write files of rows that are out of order, some with NULL for a key or a value."""
        for _ in range(files):
            self.step += 1
            for name in self.names:
                found = [self._row() for _ in range(rows)]
                self.write(name, found)
                self.oracle.executemany(INSERT.format(name), found)

    def write(self, name: str, rows: Sequence[Row]) -> None:
        """Write a file of rows of a stream, without Spark, which takes longer."""
        columns = zip(*rows, strict=True)
        table = pa.table([pa.array(each, kind) for each, kind in zip(columns, TYPES, strict=True)], NAMES)
        path = self.root / name / f"{uuid.uuid4()}.parquet"
        pq.write_table(table, path.with_name(f".{path.name}"))
        path.with_name(f".{path.name}").rename(path)
        # Spark reads files in the order of their times, in milliseconds.
        time.sleep(0.002)

    def _row(self) -> Row:
        number = self.chance.randint(self.step * 30 - 40, self.step * 30 + 40)
        key = None if self.chance.random() < 0.1 else self.chance.randint(0, 4)
        value = None if self.chance.random() < 0.1 else self.chance.randint(0, 9)
        return number, key, self.chance.randint(0, 2), value, self.chance.choice("xyz")

    def sinks(self, names: Sequence[str]) -> None:
        """Declare a sink of Parquet files for each name."""
        for name in names:
            self.session.sql(
                f"CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{self.root / name}_out')"
            )

    def found(self, name: str) -> Counter[tuple[Any, ...]]:
        """Return what the sink of a name has committed."""
        rows = self.session.spark.read.parquet(str(self.root / f"{name}_out"))
        return Counter(tuple(row) for row in rows.collect())

    def expected(self, query: str) -> Counter[tuple[Any, ...]]:
        """Return what DuckDB makes of a query."""
        return Counter(self.oracle.execute(query).fetchall())

    def insert(self, statements: Mapping[str, str], folder: str = "checkpoints", **options: Any) -> None:
        """Run a script that inserts the rows of statements, by their sinks, to the end of its streams."""
        script = "; ".join(f"INSERT INTO {sink} {text}" for sink, text in statements.items())
        self.session.run_script(script, checkpoint=str(self.root / folder), **options)

    def as_tables(self, text: str) -> str:
        """Return a statement that reads tables in the place of streams."""
        for name in self.names:
            rows = self.session.spark.read.parquet(str(self.root / name))
            rows.createOrReplaceTempView(f"table_{name}")
            text = re.sub(rf"\b{name} ([ABCDXY])\b", rf"table_{name} WATERMARK n DELAY OF 0 AS \1", text)
            text = text.replace(f"FROM {name})", f"FROM table_{name})")
        return text

    def over_tables(self, text: str) -> Counter[tuple[Any, ...]]:
        """Return the rows of a statement that reads tables in the place of streams."""
        return Counter(tuple(row) for row in self.session.sql(self.as_tables(text)).collect())

    def run(self, inserts: Sequence[str], *, name: str = "") -> None:
        """Run a set to the end of its streams; ``name``: what stands before BEGIN."""
        self.session.run_script(set_of(inserts, name), checkpoint=str(self.root / "checkpoints"))

    def block(self, sink: str = "far", part: str = "s=x") -> None:
        """Have a sink fail: a file stands where the folder of a part must be."""
        folder = self.root / f"{sink}_out" / part
        shutil.move(folder, self.root / "away")
        folder.touch()

    def unblock(self, sink: str = "far", part: str = "s=x") -> None:
        """Let a sink work again."""
        folder = self.root / f"{sink}_out" / part
        folder.unlink()
        shutil.move(self.root / "away", folder)


def set_of(inserts: Sequence[str], name: str = "") -> str:
    return f"EXECUTE STATEMENT SET {name} BEGIN {'; '.join(inserts)}; END"


def on_time(streams: Streams, files: int) -> None:
    """Write files of rows that come at the most 20 late, less than they are out of order."""
    for _ in range(files):
        streams.step += 1
        for name in streams.names:
            rows = []
            for _ in range(30):
                number = streams.step * 15 + streams.chance.randint(0, 20)
                key = None if streams.chance.random() < 0.1 else streams.chance.randint(0, 4)
                value = None if streams.chance.random() < 0.1 else streams.chance.randint(0, 9)
                rows.append((number, key, streams.chance.randint(0, 2), value, streams.chance.choice("xyz")))
            streams.write(name, rows)
            streams.oracle.executemany(INSERT.format(name), rows)


def end(streams: Streams) -> None:
    """Write a row of each stream by which all before are decided, and it is not."""
    for key, name in enumerate(streams.names):
        streams.write(name, [(1_000_000, 90 + key, 90 + key, 5, f"end {name}")])


def in_runs(streams: Streams, home: str, asked: Mapping[str, str], runs: int = 2) -> dict[str, str]:
    """Run statements in some runs whose rows are out of order, and one that ends them; return their sinks.

    Statements and sinks are by a name.
    """
    sinks = {name: name.replace(" ", "_") for name in asked}
    streams.session.context.settings.set("wjoin.state", home)
    streams.sinks([*sinks.values()])
    statements = {sink: asked[name] for name, sink in sinks.items()}
    for _ in range(runs):
        on_time(streams, 2)
        streams.insert(statements)
    end(streams)
    streams.insert(statements)
    return sinks


def assert_as_duckdb(streams: Streams, home: str, asked: Mapping[str, tuple[str, str]]) -> None:
    """Statements give what they mean to DuckDB, in three runs whose rows are out of order.

    ``asked`` has both by a name; each gives more than ten rows.
    """
    for name, sink in in_runs(streams, home, {name: each for name, (each, _) in asked.items()}).items():
        expected = streams.expected(asked[name][1])
        assert streams.found(sink) == expected, name
        assert expected.total() > 10, name


def come_after_a_move(streams: Streams, home: str, statements: Mapping[str, str]) -> None:
    """Run statements to the end of their streams, by their sinks; before it their state moves.

    It moves from one home into the other, and to three partitions.
    """
    settings = streams.session.context.settings
    streams.sinks([*statements])
    settings.set("wjoin.state", home)
    on_time(streams, 3)
    streams.insert(statements)
    settings.set("wjoin.state", "spark" if home == "files" else "files")
    with moved(streams, statements):
        on_time(streams, 1)
        end(streams)
        streams.insert(statements, "moved")


@contextlib.contextmanager
def moved(streams: Streams, statements: Mapping[str, str]) -> Iterator[None]:
    """Have the checkpoint of statements in ``moved``, for three partitions, which Spark then has."""
    session = streams.session
    old, new = (str(streams.root / each) for each in ("checkpoints", "moved"))
    script = "; ".join(f"INSERT INTO {sink} {text}" for sink, text in statements.items())
    session.repartition(script, old, new, 3)
    before = session.spark.conf.get("spark.sql.shuffle.partitions")
    session.spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        yield
    finally:
        session.spark.conf.set("spark.sql.shuffle.partitions", str(before))
