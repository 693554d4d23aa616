"""Random conditions and columns over every type and operator, as Spark has them without a window.

Over tables, and on streams whose rows come in several micro-batches.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wjoin.grammar.errors import WJoinError
from wjoin.testing.rows import rows_of

pytestmark = [pytest.mark.thorough, pytest.mark.sparks, pytest.mark.timeout(7200)]

SEED = int(os.environ.get("WJOIN_SEED", random.randrange(1 << 32)))
"""What all conditions are drawn from: printed, so that they can be drawn again with WJOIN_SEED."""

MANY = int(os.environ.get("WJOIN_CASES", "300"))
SIDE_BY_SIDE = 6
"""The conditions of one statement: each SELECT of its UNION ALL has one."""

ROWS = 12
FILES = 3
WINDOW = "WINDOW (A, B) = 2 SECONDS"
SAME = "abs(unix_micros(A.ts) - unix_micros(B.ts)) <= 2000000"
HINTS = ("", "", "", "ALGORITHM(NLW)", "ALGORITHM(MW)", "ALGORITHM(ORDERED)", "PLAN(PSP, 3)", "PLAN(NATIVE)")

# Values -----------------------------------------------------------------------

_WHOLE = ("0", "1", "-1", "2", "3")
_PARTS = ("0", "1", "-1", "0.5", "-0.5", "1.25", "2.5", "0.01")
_REAL = (*_PARTS, "'-0.0'", "'NaN'", "'Infinity'", "'-Infinity'", "0.1")
_TEXT = ("'ab'", "'ab '", "'abc'", "' ab'", "''", "'Ab'", "'x'", "'ä'", "'1'")
_DATE = ("'2024-01-01'", "'2024-02-29'", "'1969-12-31'", "'0001-01-01'", "'9999-12-30'")
_TIME = (
    "'2024-01-01'",
    "'2024-03-31 01:30:00.000001'",
    "'1969-12-31 23:59:59.999999'",
    "'2024-02-29 12:00:00'",
)
_SPAN = ("'0 0:0:0'", "'1 0:0:0'", "'-1 0:0:0.000001'", "'0 12:30:0'", "'31 0:0:0'")
_MONTHS = ("'0-0'", "'1-0'", "'-0-1'", "'1-2'", "'0-11'")

COLUMNS: dict[str, dict[str, tuple[str, Sequence[str]]]] = {
    "number": {
        "n1": ("TINYINT", (*_WHOLE, "127", "-128")),
        "n4": ("INT", _WHOLE),
        "n8": ("BIGINT", (*_WHOLE, "9223372036854775807", "-9223372036854775808", "9007199254740993")),
        "m2": ("DECIMAL(10, 2)", (*_PARTS, "99999999.99", "-99999999.99")),
        "m4": ("DECIMAL(20, 4)", _PARTS),
        "m0": ("DECIMAL(38, 0)", (*_WHOLE, "9" * 38, "-" + "9" * 38)),
        "m18": ("DECIMAL(38, 18)", (*_PARTS, "0.000000000000000001")),
        "m5": ("DECIMAL(5, 5)", ("0", "0.5", "-0.5", "0.01", "0.99999")),
        "f4": ("FLOAT", _REAL),
        "f8": ("DOUBLE", (*_REAL, "9007199254740993", "1e308")),
    },
    "text": {
        "s": ("STRING", _TEXT),
        "c3": ("CHAR(3)", ("'ab'", "'abc'", "' ab'", "''", "'Ab'", "'x'")),
        "c5": ("CHAR(5)", ("'ab'", "'abc'", "' ab'", "''", "'Ab'", "'1'")),
        "v5": ("VARCHAR(5)", _TEXT),
    },
    "date": {"d": ("DATE", _DATE)},
    "time": {"t": ("TIMESTAMP", _TIME), "u": ("TIMESTAMP_NTZ", _TIME)},
    "span": {"i": ("INTERVAL DAY TO SECOND", _SPAN), "ih": ("INTERVAL HOUR", ("'0'", "'24'", "'-24'"))},
    "months": {"y": ("INTERVAL YEAR TO MONTH", _MONTHS), "yy": ("INTERVAL YEAR", ("'0'", "'1'", "'-1'"))},
    "truth": {"b": ("BOOLEAN", ("true", "false"))},
    "bytes": {"x": ("BINARY", ("X''", "X'00'", "X'61'", "X'6162'"))},
}
LITERALS = {
    "number": ("0", "1", "-1", "0.5", "1.50", "1L", "1e0", "2BD"),
    "text": ("'ab'", "'ab   '", "'abc'", "''", "NULL"),
    "date": ("DATE '2024-01-01'", "DATE '1969-12-31'"),
    "time": ("TIMESTAMP '2024-01-01'", "TIMESTAMP_NTZ '2024-02-29 12:00:00'"),
    "span": ("INTERVAL '1' DAY", "INTERVAL '12:30' HOUR TO MINUTE"),
    "months": ("INTERVAL '1' YEAR", "INTERVAL '-1' MONTH"),
    "truth": ("true", "false", "NULL"),
    "bytes": ("X'61'",),
}
# Each by what it gives; in braces what it takes.
OPERATORS: dict[str, tuple[str, ...]] = {
    "number": (
        "(- {number})",
        "abs({number})",
        "({number} + {number})",
        "({number} - {number})",
        "({number} * {number})",
        "try_add({number}, {number})",
        "try_multiply({number}, {number})",
        "try_divide({number}, {number})",
        "({number} % 3)",
        "(n4 DIV 2)",
        "(n4 & 1)",
        "round({number}, 1)",
        "floor({number})",
        "ceil({number})",
        "sign({number})",
        "coalesce({number}, 0)",
        "nullif({number}, 1)",
        "greatest({number}, {number})",
        "CASE WHEN {truth} THEN {number} ELSE {number} END",
        "try_cast({number} AS DECIMAL(12, 3))",
        "try_cast({number} AS INT)",
        "CAST({number} AS DOUBLE)",
        "length({text})",
        "datediff({date}, {date})",
        "year({date})",
    ),
    "text": (
        "upper({text})",
        "trim({text})",
        "substring({text}, 1, 2)",
        "concat({text}, {text})",
        "({text} || 'b')",
        "rpad({text}, 4, '.')",
        "coalesce({text}, 'ab')",
        "nullif({text}, 'ab')",
        "CASE {text} WHEN 'ab' THEN {text} ELSE 'x' END",
        "CASE WHEN {truth} THEN {text} ELSE {text} END",
        "CAST({number} AS STRING)",
        "CAST({text} AS CHAR(4))",
    ),
    "date": (
        "date_add({date}, 1)",
        "({date} - INTERVAL '1' DAY)",
        "({date} + yy)",
        "last_day({date})",
        "trunc({date}, 'MM')",
        "CAST({time} AS DATE)",
        "coalesce({date}, DATE '2024-01-01')",
    ),
    "time": (
        "(t + {span})",
        "(u - {span})",
        "(t + {months})",
        "date_trunc('DAY', {time})",
        "CAST(d AS TIMESTAMP)",
        "greatest(t, t)",
    ),
    "span": ("(- {span})", "abs({span})", "({span} + {span})", "({span} * 2)", "(t - t)"),
    "months": ("(- {months})", "({months} + {months})", "({months} * 2)", "abs({months})"),
    "truth": (
        "(NOT {truth})",
        "({number} > 0)",
        "({text} IN ('ab', 'x '))",
        "({text} = 'ab')",
        "{number} IS NULL",
    ),
    "bytes": ("substring({bytes}, 1, 1)", "CAST({text} AS BINARY)", "concat({bytes}, {bytes})"),
}
KINDS = ("number",) * 5 + ("text",) * 3 + tuple(COLUMNS)[2:]


@dataclass(frozen=True)
class Draw:
    """Draws random conditions."""

    chance: random.Random

    def value(self, kind: str, alias: str, depth: int) -> str:
        """Return an expression over the columns of one stream."""
        lot = self.chance.random()
        if depth > 0 and lot < 0.6:
            return self.filled(self.chance.choice(OPERATORS[kind]), alias, depth - 1)
        if depth < 2 and lot > 0.9:
            return self.chance.choice(LITERALS[kind])
        return f"{alias}.{self.chance.choice([*COLUMNS[kind]])}"

    def filled(self, operator: str, alias: str, depth: int) -> str:
        """Return an operator with its operands."""
        named = re.sub(r"\b(n4|yy|t|u|d)\b(?!')", rf"{alias}.\1", operator)
        return re.sub(r"{(\w+)}", lambda found: self.value(found[1], alias, depth), named)

    def compared(self) -> str:
        """Return a comparison of values of two streams, or of one of them with a constant."""
        kind = self.chance.choice(KINDS)
        left, right, other = (self.value(kind, alias, 2) for alias in "ABB")
        constant = self.chance.choice(LITERALS[kind])
        forms = (f"{left} = {right}",) * 8 + (
            f"{left} <=> {right}",
            f"{left} <=> {right}",
            f"{left} < {right}",
            f"{left} >= {right}",
            f"{left} <> {right}",
            f"{left} BETWEEN {right} AND {other}",
            f"{left} IN ({right}, {other}, {constant})",
            f"{right} = {constant}",
            f"coalesce({left}, {right}) = {constant}",
        )
        return self.chance.choice(forms)

    def condition(self) -> str:
        """Return a condition of WHERE: one or several comparisons."""
        return self.chance.choice(
            (
                "{0}",
                "{0}",
                "{0} AND A.n4 = B.n4",
                "{0} AND {1}",
                "A.n4 = B.n4 AND ({0} OR {1})",
                "A.n4 <= B.n4 AND NOT ({0})",
            )
        ).format(self.compared(), self.compared())

    def column(self) -> str:
        """Return a column of the select list, as text."""
        kind = self.chance.choice(KINDS)
        value = self.chance.choice((self.value(kind, "A", 2), self.compared()))
        return f"to_json(named_struct('value', {value}))"


# Statements -------------------------------------------------------------------


@pytest.fixture(scope="module")
def typed(spark: SparkSession) -> Iterator[str]:
    """A table with columns of every type, in several files."""
    chance = random.Random(SEED)
    columns = {name: each for kind in COLUMNS.values() for name, each in kind.items()}
    declared = ", ".join(f"{name} {of}" for name, (of, _) in columns.items())
    spark.sql("DROP TABLE IF EXISTS typed")
    spark.sql(f"CREATE TABLE typed (id INT, ts TIMESTAMP, {declared}) USING parquet")
    for first in range(0, ROWS * FILES, ROWS):
        rows = []
        for place in range(first, first + ROWS):
            drawn = (
                "NULL" if chance.random() < 0.1 else _typed(chance.choice(values), of)
                for of, values in columns.values()
            )
            time = f"TIMESTAMP '2024-01-01 12:00:0{place % 5 + first // 6}'"
            rows.append(f"({place}, {time}, {', '.join(drawn)})")
        spark.sql(f"INSERT INTO typed SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}")
    yield "typed"
    spark.sql("DROP TABLE typed")


def _typed(value: str, of: str) -> str:
    if of.startswith("INTERVAL"):
        return f"INTERVAL {value} {of.removeprefix('INTERVAL ')}"
    return value if "CHAR" in of or of == "STRING" else f"CAST({value} AS {of})"


@dataclass(frozen=True)
class Selected:
    """A window join of two streams with one column beside the numbers of the rows."""

    number: int
    hint: str
    column: str
    condition: str

    def windowed(self) -> str:
        """Return it as a window join."""
        hint = f"/*+ {self.hint} */" if self.hint else ""
        columns = f"{self.number} AS number, A.id, B.id AS other, {self.column} AS value"
        return f"SELECT {hint} {columns} FROM left_typed A, right_typed B {WINDOW} WHERE {self.condition}"


Bag = Counter[tuple[Any, ...]]


def by_spark(session: Any, drawn: Sequence[Selected]) -> dict[Selected, Bag]:
    """Return the rows of those that Spark runs: an error of one value is one of the statement."""
    columns = (f"{each.condition} AS c{each.number}, {each.column} AS v{each.number}" for each in drawn)
    text = f"SELECT A.id, B.id AS other, {', '.join(columns)} FROM typed A, typed B WHERE {SAME}"
    try:
        rows = session.spark.sql(text).toArrow().to_pylist()
    except PySparkException:
        half = len(drawn) // 2
        parts = (drawn[:half], drawn[half:]) if half else ()
        return {one: bag for part in parts for one, bag in by_spark(session, part).items()}
    return {
        each: Counter(
            (each.number, row["id"], row["other"], row[f"v{each.number}"])
            for row in rows
            if row[f"c{each.number}"]
        )
        for each in drawn
    }


def joined(session: Any, selected: Sequence[Selected], folder: Path, *, streaming: bool) -> Bag:
    """Return the rows of window joins, run as one statement."""
    frame = session.sql(" UNION ALL ".join(each.windowed() for each in selected))
    if not streaming:
        return Counter(rows_of(frame.toArrow()))
    found: Bag = Counter()
    query = (
        frame.writeStream.foreachBatch(lambda rows, _: found.update(rows_of(rows.toArrow())))
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    return found


def differences(session: Any, wanted: dict[Selected, Bag], folder: Path, *, streaming: bool) -> list[str]:
    """Return in words where window joins have other rows than Spark, or fail."""
    try:
        made = joined(session, [*wanted], folder, streaming=streaming)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a difference)
        if len(wanted) > 1:
            parts = enumerate(wanted.items())
            return [
                each
                for number, (one, bag) in parts
                for each in differences(session, {one: bag}, folder / str(number), streaming=streaming)
            ]
        ((one, bag),) = wanted.items()
        if one.hint and isinstance(error, WJoinError):
            freely = {replace(one, hint=""): bag}
            return differences(session, freely, folder / "freely", streaming=streaming)
        return [f"{one.windowed()}\n  {type(error).__name__}: {str(error)[:1500]}"]
    return [
        f"{one.windowed()}\n  missing {[*(bag - own)][:3]}\n  too many {[*(own - bag)][:3]}"
        for one, bag in wanted.items()
        if (own := Counter({row: n for row, n in made.items() if row[0] == one.number})) != bag
    ]


def assert_as_spark(session: Any, folder: Path, count: int, *, streaming: bool) -> None:
    """Assert that so many random statements have the rows that Spark finds without a window."""
    print(f"WJOIN_SEED={SEED}: {count} conditions, {'streams' if streaming else 'tables'}")
    draw = Draw(random.Random(SEED + streaming))
    source = session.spark.readStream.option("maxFilesPerTrigger", 1) if streaming else session.spark
    for name in ("left_typed", "right_typed"):
        session.stream(name, source.table("typed"), event_time="ts", delay="10 seconds")
    told: list[str] = []
    done = fruitful = 0
    while done < count:
        session.spark.conf.set("spark.sql.ansi.enabled", draw.chance.choice(("true", "true", "false")))
        drawn = [
            Selected(done + place, draw.chance.choice(HINTS), draw.column(), draw.condition())
            for place in range(SIDE_BY_SIDE)
        ]
        wanted = by_spark(session, drawn)
        if wanted:
            told += differences(session, wanted, folder / str(done), streaming=streaming)
        done += len(wanted)
        fruitful += sum(bag.total() > 0 for bag in wanted.values())
    print(f"{done} conditions, {fruitful} with results")
    assert not told, "\n\n".join(told)
    assert fruitful >= done // 10


@pytest.mark.parametrize("streaming", [False, True], ids=["tables", "streams"])
@pytest.mark.long
def test_operators(session: Any, typed: str, tmp_path: Path, streaming: bool) -> None:
    assert_as_spark(session, tmp_path, SIDE_BY_SIDE, streaming=streaming)


@pytest.mark.parametrize("streaming", [False, True], ids=["tables", "streams"])
def test_many_operators(session: Any, typed: str, tmp_path: Path, streaming: bool) -> None:
    assert_as_spark(session, tmp_path, MANY, streaming=streaming)
