"""Simple lines of text files are read into columns: the rows are those of Spark's own reader."""

import gzip
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import wjoin
from tests.spark.test_column_blocks import assert_same, blocks_node, gone_through, through
from tests.tiers import tiers
from wjoin import progress

TYPES = {
    "n": "BIGINT",
    "i": "INT",
    "s": "SMALLINT",
    "b": "TINYINT",
    "flag": "BOOLEAN",
    "x": "DOUBLE",
    "f": "FLOAT",
    "money": "DECIMAL(9, 2)",
    "vast": "DECIMAL(30, 5)",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "word": "STRING",
    "more": "STRING",
}
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
CORRUPT = "_corrupt_record"

WHOLE = """
    0 -0 1 +5 007 -12 127 128 -128 -129 32767 32768 2147483647 -2147483648 2147483648 1e3 1.0 0x1F 1_000
    9223372036854775807 -9223372036854775808 9223372036854775808 99999999999999999999 - ٣ 1L
""".split()
REAL = """
    0 -0.0 0.1 1.5 -2.25 123456789012345 1234567890123456 0.1234567890123456789 1e400 -1e400 1e-400
    4.9e-324 NaN nan Infinity -Infinity Inf -Inf +5 +1.5 1d 1f 0x1F 0x1p3 .5 5. . - 1.2.3 1,5 1e5 1E+5
    e5 16777217 3.4e39 00001.50 9007199254740993 0.3 33.3333 1e22 1e23 8.5e15 123.4567 1234567.8
    12345678.9 1.17549435e-38 1.0000001788139343
""".split()
MONEY = "0 1.5 -1.005 1234567.89 12345678.9 0.005 1e3 .5 5. 99999999.99 9999999.994 9999999.995 1.2.3".split()
FLAGS = "true false True FALSE tRuE t 1 yes truE faLse".split()
DATES = """
    2024-01-31 2024-02-30 2023-02-29 2024-02-29 0000-01-01 0001-01-01 1582-10-10 9999-12-31 12024-01-01
    2024-1-5 2024-01 2024 2024-13-01 2024-01-00 24-01-01 2024-01-31T 2024-01-31T10:00:00 2024/01/31
    -2024-01-31 today epoch ٢٠٢٤-01-01
""".split()
CLOCKS = """
    00:00:00 23:59:59 24:00:00 02:30:00 01:30:00 10:20 10 1:2:3 10:20:60 10:20:30.1 10:20:30.123456
    10:20:30.1234567 10:20:30.123456789 10:20:30. 10:20:30Z 10:20:30.5Z 10:20:30+01:00 10:20:30.25-0830
    10:20:30UTC 10:20:30_Europe/Berlin 10:20:30z 10:61:00 10:20:30,5 T
""".split()
DAYS = """
    2024-01-31 2024-03-31 2024-10-27 1800-01-01 0001-01-01 9999-12-31 2024-02-30 1969-12-31 2011-12-30
""".split()
WORDS = [
    *(
        "plain",
        "",
        " ",
        "  blanks around  ",
        "back\\slash",
        "\\",
        "#comment",
        "NULL",
        "null",
        "'single'",
        "a|b;c",
    ),
    *('"quoted"', '"a,b"', '""', '"""', '"a""b"', '"a\\"b"', 'in"side', '"open', '"closed"after', '"blank" '),
    *(' "before"', '" inner "', '"ß"', "ß漢字😀", "\ufeff", "\ufffd", "\u2028", "\x7f", "\tTab\t", "x" * 200),
    *("\x00", "\x01", "nul\x00l"),
]
ODD_BYTES = [
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"caf\xe9",
    b"\xf0\x9f\x98",
    b"\xf5",
]
LINES = [b"", b" ", b"   \t ", b",", b",,,,,,,,,,,,,", b"#" + b"," * 13, b'"', b'""', b"\xef\xbb\xbf", b"\\"]

KINDS: dict[str, Callable[[random.Random], str]] = {
    "BIGINT": lambda chance: chance.choice([*WHOLE, str(chance.randint(-(2**64), 2**64))]),
    "DOUBLE": lambda chance: chance.choice(
        [*REAL, repr(chance.random()), f"{chance.uniform(-1e6, 1e6):.3f}"]
    ),
    "DECIMAL": lambda chance: chance.choice([*MONEY, *REAL, f"{chance.uniform(-1e6, 1e6):.3f}"]),
    "BOOLEAN": lambda chance: chance.choice(FLAGS),
    "DATE": lambda chance: chance.choice(DATES),
    "TIMESTAMP": lambda chance: chance.choice(
        [*DATES, chance.choice(DAYS) + chance.choice(" T\t_") + chance.choice(CLOCKS)]
    ),
    "STRING": lambda chance: chance.choice(WORDS),
}
KINDS |= dict.fromkeys(("INT", "SMALLINT", "TINYINT"), KINDS["BIGINT"])
KINDS |= {"FLOAT": KINDS["DOUBLE"], "TIMESTAMP_NTZ": KINDS["TIMESTAMP"]}

PLAIN: dict[str, Callable[[random.Random], str]] = {
    "BIGINT": lambda chance: str(chance.randint(-(2**63) + 1, 2**63 - 1)),
    "INT": lambda chance: str(chance.randint(-(2**31), 2**31 - 1)),
    "SMALLINT": lambda chance: str(chance.randint(-(2**15), 2**15 - 1)),
    "TINYINT": lambda chance: str(chance.randint(-128, 127)),
    "BOOLEAN": lambda chance: chance.choice(["true", "false"]),
    "DOUBLE": lambda chance: repr(chance.uniform(-1e9, 1e9)),
    "FLOAT": lambda chance: f"{chance.uniform(-1e4, 1e4):.{chance.randint(0, 9)}f}",
    "DECIMAL": lambda chance: f"{chance.uniform(-1e6, 1e6):.{chance.randint(0, 4)}f}",
    "DATE": lambda chance: (
        f"{chance.randint(1, 9999):04}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    ),
    "TIMESTAMP": lambda chance: (
        f"{PLAIN['DATE'](chance)}{chance.choice(' T')}{chance.randint(0, 23):02}:{chance.randint(0, 59):02}"
        f":{chance.randint(0, 59):02}.{chance.randint(0, 999999):0{chance.randint(1, 6)}}"[:26]
        + chance.choice(["", "", "Z"])
    ),
    "STRING": lambda chance: chance.choice(
        ["word", '"quoted, with a comma"', "größer", f"w{chance.random()}"]
    ),
}
PLAIN["TIMESTAMP_NTZ"] = PLAIN["TIMESTAMP"]


PLAIN_JSON = PLAIN | {
    "FLOAT": lambda chance: chance.choice([PLAIN["FLOAT"](chance), f"{chance.uniform(-1e4, 1e4):e}"]),
    "DOUBLE": lambda chance: chance.choice(
        [PLAIN["DOUBLE"](chance), PLAIN["BIGINT"](chance), f"{chance.uniform(-1, 1):.17e}"]
    ),
    "DECIMAL": lambda chance: chance.choice([PLAIN["DECIMAL"](chance), f'"{PLAIN["DECIMAL"](chance)}"']),
    "DATE": lambda chance: f'"{PLAIN["DATE"](chance)}"',
    "TIMESTAMP": lambda chance: f'"{PLAIN["TIMESTAMP"](chance)}"',
    "TIMESTAMP_NTZ": lambda chance: f'"{PLAIN["TIMESTAMP_NTZ"](chance)}"',
    "STRING": lambda chance: chance.choice(
        ['""', '"word"', '"größer 😀"', f'"w{chance.random()}"', '"a, {b}: [c]"']
    ),
}
ODD_JSON = """
    null NULL nul true false True "true" -0 0 -0.0 0e5 -0E5 01 -01 1. .5 +1 1e400 -1e-400 16777217
    99999999999999999999 12345678901234567890.5 123456789012345678901234567890 0.1e-3 1E+2 1e 1e+ - -- NaN
    Infinity -Infinity -INF "NaN" "Infinity" "-INF" "+INF" "inf" "" " " "1" "1.5" "1,234.5" "-0" "1e2" " 7"
    1x 0x1F 1_0 1700000000 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
    128 200 255 256 32768 2147483648 [] {} [1,2] {"n":1} {"a":[{"b":"c"}]} [1,] {"a":} {"a" [ ] "\\""
    "\\u00e9" "a\\nb" "a\\/b" "\\x" "\\ud83d" 'x' "x /*c*/1 1/*c*/ // #
""".split()
ODD_JSON += [
    "1 2",
    f"1{'0' * 150}",
    f"0.{'1' * 150}",
    f"{'[' * 150}{']' * 150}",
    f'"{"long " * 12_000}"',
    '"\t"',
    '"\x7f"',
]
JSON_LINES = [
    *(
        b"",
        b" ",
        b"{}",
        b" { } ",
        b"[]",
        b"[{}]",
        b"[",
        b"{",
        b"}",
        b"null",
        b"1",
        b'"n"',
        b"{}{}",
        b"{} x",
        b"[[]]",
    ),
    *(
        b'[{"n":1},{"n":2,"word":"x"}]',
        b'[{"n":1},{"n":"x"}]',
        b'{"n":1}{"n":2}',
        b'{"n":1} garbage',
        b'{"n":1},',
    ),
    *(
        b'\xef\xbb\xbf{"n":1}',
        b"\xef\xbb\xbf",
        b"\xfe\xff\x00{\x00}",
        b"{\x00}\x00",
        b"\x00\x00\x00{",
        b"n",
        b"{n:1}",
    ),
    *(
        b"{'n':1}",
        b'{"n":1,}',
        b'{"n" 1}',
        b'{,"n":1}',
        b'{"n":1 "i":2}',
        b"// no",
        b"{/**/}",
        b'{"n"}',
        b'{"\\u006e":1}',
    ),
    *(
        b'{"n":1}\x0c',
        b'\x0b{"n":1}',
        b"\xc2\xa0{}",
        b'{"n":1,"n":2}',
        b'{"n":1,"n":null}',
        b'{"n":"x","n":2}',
        b"#{}",
    ),
    *(
        b'{"":1}',
        b'{"_corrupt_record":"x","n":1}',
        b'{"_corrupt_record":1}',
        b'{"unread":{"n":1}}',
        b'{"unread":01,"n":1}',
    ),
]
OTHER_KEYS = [
    "N",
    "Word",
    "unread",
    "",
    "n ",
    "größe",
    CORRUPT,
    "words",
    "wor",
    "with blank",
    "'n'",
    "é" * 40,
]


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set what a session has, for a while."""
    before = {key: spark.conf.get(key) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def csv_line(chance: random.Random) -> bytes:
    """Return a line of a file: mostly of plain values, some odd, few with more or less fields."""
    if chance.random() < 0.03:
        return chance.choice(LINES)
    odd = chance.choice([0, 0, 0.1, 0.5])
    fields = []
    for kind in TYPES.values():
        draw = chance.random()
        if draw < 0.05:
            fields.append(b"")
        elif draw < 0.05 + odd / 20:
            fields.append(chance.choice(ODD_BYTES))
        else:
            text = (KINDS if chance.random() < odd else PLAIN)[kind.partition("(")[0]](chance)
            quoted = chance.random() < 0.05 and '"' not in text
            blank = " " if chance.random() < odd / 10 else ""
            fields.append((f'{blank}"{text}"{blank}' if quoted else f"{blank}{text}").encode())
    if chance.random() < 0.04:
        fields = fields[: chance.randint(1, len(fields))] if chance.random() < 0.5 else [*fields, b"more"]
    return b",".join(fields)


def json_line(chance: random.Random) -> bytes:
    """Return a line of a file: mostly one object of plain values, some odd, few with other keys or none."""
    if chance.random() < 0.05:
        return chance.choice(JSON_LINES)
    odd = chance.choice([0, 0, 0, 0.1, 0.5])
    names = (
        list(TYPES) if chance.random() < 0.7 else chance.sample(list(TYPES), chance.randint(1, len(TYPES)))
    )
    if chance.random() < 0.3:
        names.insert(chance.randint(0, len(names)), chance.choice([*OTHER_KEYS, *TYPES]))
    members = []
    for name in names:
        kind = TYPES.get(name, "").partition("(")[0] or chance.choice(list(PLAIN_JSON))
        value = json_value(chance, kind, odd)
        before, after = (chance.choice([b"", b"", b" ", b"\t "]) for _ in range(2))
        quote = b"'" if chance.random() < odd / 50 else b'"'
        members.append(before + quote + name.encode() + quote + after + b":" + before + value + after)
    line = b"{" + b",".join(members) + b"}"
    return line[: chance.randint(0, len(line))] if chance.random() < 0.02 else line


def json_value(chance: random.Random, kind: str, odd: float) -> bytes:
    """Return the text of a value that is plain for a type, or not."""
    draw = chance.random()
    if draw < 0.05:
        return b"null"
    if draw < 0.05 + odd / 20:
        return b'"' + chance.choice(ODD_BYTES) + b'"'
    if chance.random() >= odd:
        return PLAIN_JSON[kind](chance).encode()
    if chance.random() < 0.5:
        return chance.choice(ODD_JSON).encode()
    text = KINDS[kind](chance)
    return (f'"{text}"' if chance.random() < 0.6 else text).encode()


def write_lines(chance: random.Random, path: Path, start: bytes, lines: Iterable[bytes]) -> None:
    """Write a file of lines, packed where its name says so."""
    ends = chance.choice([b"\n", b"\n", b"\r\n", b"\r"])
    text = start + ends.join(lines) + chance.choice([b"", ends])
    if path.suffix == ".gz":
        text = gzip.compress(text)
    path.write_bytes(text)


def csv_file(chance: random.Random, path: Path, header: bytes, lines: int) -> None:
    """Write a file of random lines."""
    start = chance.choice([b"", b"", b"\xef\xbb\xbf", b"\n \n"]) + header
    write_lines(chance, path, start, (csv_line(chance) for _ in range(lines)))


def outcome(spark: SparkSession, plan: JavaObject) -> tuple[JavaObject | None, str]:
    """Return the rows of a plan, and as text what ends it."""
    try:
        return plan.executeCollect(), ""
    except (CapturedException, Py4JJavaError) as error:
        origin = error.java_exception if isinstance(error, Py4JJavaError) else error._origin
        text = spark._jvm.org.apache.spark.util.Utils.exceptionString(origin)
        # Which of several refused lines or headers is met first depends on the threads.
        return None, "refused" if "MALFORMED_RECORD_IN_PARSING" in text or "CSV header" in text else text


def assert_read_alike(rows: DataFrame) -> int:
    """Both ways of reading give the same rows, to the last bit, or end alike. Return how many rows."""
    spark, scan = rows.sparkSession, rows._jdf.queryExecution().executedPlan().collectLeaves().head()
    fast = spark._jvm.wjoin.lines.FastScans().columnar(scan)
    assert fast.supportsColumnar()
    return assert_alike(spark, spark._jvm.org.apache.spark.sql.execution.ColumnarToRowExec(fast), scan)


def assert_alike(spark: SparkSession, one: JavaObject, other: JavaObject) -> int:
    """Two plans give the same rows, to the last bit, or end alike. Return how many rows."""
    found, failed = outcome(spark, one)
    wanted, failure = outcome(spark, other)
    assert failed == failure
    if wanted is None:
        return 0
    as_list = spark._jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray
    assert as_list(found).equals(as_list(wanted)), difference(found, wanted)
    return len(wanted)


def difference(found: JavaObject, wanted: JavaObject) -> str:
    """Return the first rows that differ."""
    pairs = zip(found, wanted, strict=False)
    return next(
        (f"row {n}: {one} {two}" for n, (one, two) in enumerate(pairs) if not one.equals(two)), "one ends"
    )


def csv_files(chance: random.Random, paths: list[Path], lines: int) -> dict[str, str]:
    """Write files of random lines of CSV. Return the options that they are read with."""
    names = list(TYPES)
    header = chance.choice([True, False])
    first = ",".join(chance.choice([names, [*names[1:], names[0]], names[:3]])).encode() + b"\n"
    for path in paths:
        csv_file(chance, path, first if header else b"", lines)
    return {"header": str(header), "enforceSchema": str(chance.random() < 0.8)}


def json_files(chance: random.Random, paths: list[Path], lines: int) -> dict[str, str]:
    """Write files of random lines of JSON. Return the options that they are read with."""
    for path in paths:
        write_lines(
            chance, path, chance.choice([b"", b"", b"\n \n"]), (json_line(chance) for _ in range(lines))
        )
    return {"encoding": "UTF-8"} if chance.random() < 0.2 else {}


FORMATS = {"csv": csv_files, "json": json_files}


def check_random(spark: SparkSession, folder: Path, form: str, seed: int, lines: int) -> int:
    """Compare what is read of files of a seed, with options of that seed. Return how many rows."""
    chance = random.Random(seed)
    schema = chance.choice([COLUMNS, f"{COLUMNS}, {CORRUPT} STRING"])
    names = list(TYPES)
    paths = [folder / f"{seed}-{n}.{form}{chance.choice(['', '', '.gz'])}" for n in range(2)]
    options = {
        **FORMATS[form](chance, paths, lines),
        "mode": chance.choice(["PERMISSIVE", "PERMISSIVE", "DROPMALFORMED", "FAILFAST"]),
        "pathGlobFilter": f"{seed}-*",
    }
    wanted = names if chance.random() < 0.5 else chance.sample(names, chance.randint(1, len(names)))
    if CORRUPT in schema and chance.random() < 0.8:
        wanted = [*wanted, CORRUPT]
    with_settings = {
        "spark.sql.ansi.enabled": chance.choice(["true", "false"]),
        "spark.sql.session.timeZone": chance.choice(["UTC", "Europe/Berlin", "Pacific/Apia", "+05:30"]),
        "spark.sql.csv.parser.columnPruning.enabled": chance.choice(["true", "true", "false"]),
        "spark.sql.json.enablePartialResults": chance.choice(["true", "true", "false"]),
        "spark.sql.files.maxPartitionBytes": chance.choice(["16k", "10m"]),
    }
    with settings(spark, with_settings):
        print(seed, options, with_settings, wanted)
        read = spark.read.schema(schema).options(**options).format(form).load(str(folder))
        return assert_read_alike(read.select(*wanted))


@pytest.mark.core
@pytest.mark.parametrize("form", tiers(FORMATS, long=["csv"]))
@pytest.mark.parametrize("seed", tiers([0, 1], long=[1]))
def test_random_lines(spark: SparkSession, tmp_path: Path, form: str, seed: int) -> None:
    check_random(spark, tmp_path, form, seed, 200)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_many_random_lines(spark: SparkSession, tmp_path: Path, form: str) -> None:
    assert sum(check_random(spark, tmp_path, form, seed, 300) for seed in range(2, 60)) > 10_000


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("form", FORMATS)
def test_very_many_random_lines(spark: SparkSession, tmp_path: Path, form: str) -> None:
    first = time.time_ns() // 1_000_000
    assert sum(check_random(spark, tmp_path, form, first + n, 1000) for n in range(300)) > 100_000


def check_random_records(spark: SparkSession, seed: int, count: int) -> int:
    """Compare what from_json makes of random values, and that without the values that are simple."""
    chance = random.Random(seed)
    blank = chance.choice([b" ", b"\n", b"\r\n\t"])
    values = [json_line(chance).replace(b" ", blank) if chance.random() < 0.9 else None for _ in range(count)]
    kinds = dict(chance.sample(list(TYPES.items()), chance.randint(1, len(TYPES))))
    if chance.random() < 0.5:
        kinds[CORRUPT] = "STRING"
    options = (
        {"mode": chance.choice(["PERMISSIVE", "PERMISSIVE", "FAILFAST"])} if chance.random() < 0.5 else {}
    )
    with_settings = {
        "spark.sql.ansi.enabled": chance.choice(["true", "false"]),
        "spark.sql.session.timeZone": chance.choice(["UTC", "Europe/Berlin", "Pacific/Apia", "+05:30"]),
        "spark.sql.json.enablePartialResults": chance.choice(["true", "true", "false"]),
    }
    with settings(spark, with_settings):
        print(seed, options, with_settings, kinds)
        rows = spark.createDataFrame([(each,) for each in values], "value BINARY").coalesce(1)
        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        record = F.from_json(F.col("value").cast("string"), columns, options or None)
        plan = rows.select(record.alias("record"))._jdf.queryExecution().sparkPlan()
        fast = spark._jvm.wjoin.lines.FastRecords().read(plan)
        assert not fast.equals(plan)
        assert fast.toString() == plan.toString()
        return assert_alike(spark, fast, plan)


@pytest.mark.core
@pytest.mark.parametrize("seed", tiers([0, 1], long=[1]))
def test_random_records(spark: SparkSession, seed: int) -> None:
    check_random_records(spark, seed, 400)


@pytest.mark.long
def test_many_random_records(spark: SparkSession) -> None:
    assert sum(check_random_records(spark, seed, 1000) for seed in range(2, 60)) > 10_000


@pytest.mark.core
@pytest.mark.parametrize("form", tiers(FORMATS, long=["csv"]))
def test_lines_go_to_python_as_columns(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """With columns of folders and of the file's own, and expressions that are computed beside them."""
    chance, options = random.Random(7), {}
    for day in ("2024-01-01", "2024-01-02"):
        (tmp_path / f"part={day}").mkdir()
        options = FORMATS[form](chance, [tmp_path / f"part={day}" / f"a.{form}"], 50)
    if form == "csv":
        options["header"] = "false"
    read = spark.read.schema(f"{COLUMNS}, {CORRUPT} STRING, part DATE").options(**options)
    wanted = (
        read.format(form)
        .load(str(tmp_path))
        .select("*", "_metadata.file_name", F.expr("n % 7").alias("rest"))
    )
    found = gone_through(wanted)
    assert "Batched: true" in blocks_node(found)
    assert_same(found, wanted)


def records_class(record: Column, rows: DataFrame) -> str:
    """Return the class that makes records of rows on the way to Python."""
    node = gone_through(rows.select(record.alias("record")))._jdf.queryExecution().executedPlan()
    while "ProjectExec" not in node.getClass().getName():
        node = node.children().head()
    return str(node.expressions().head().child().getClass().getSimpleName())


@pytest.mark.core
def test_records_go_to_python(spark: SparkSession, tmp_path: Path) -> None:
    """Values of which records are made, as those of Kafka."""
    write_lines(random.Random(8), tmp_path / "a.txt", b"", (json_line(random.Random(n)) for n in range(200)))
    rows = spark.read.text(str(tmp_path))
    record = F.from_json("value", f"{COLUMNS}, {CORRUPT} STRING")
    assert records_class(record, rows) == "SimpleRecords"
    wanted = rows.select(record.alias("record"), F.length("value").alias("size")).where("size > 9")
    wanted = wanted.select("record.*", "size")
    assert_same(gone_through(wanted), wanted)
    for other in (
        F.from_json("value", "n BIGINT", {"timestampFormat": "yyyy"}),
        F.from_json("value", "n BIGINT", {"allowSingleQuotes": "false"}),
        F.from_json("value", "n BIGINT, list ARRAY<INT>"),
        F.from_json("value", "MAP<STRING, STRING>"),
        F.from_json("value", "n BIGINT, n BIGINT"),
    ):
        assert records_class(other, rows) == "JsonToStructs"
    for refused, reason in (
        (F.from_json("value", "n BIGINT", {"mode": "DROPMALFORMED"}), "PARSE_MODE_UNSUPPORTED"),
        (F.from_json("value", f"n BIGINT, {CORRUPT} INT"), "INVALID_CORRUPT_RECORD_TYPE"),
    ):
        simple = spark.range(9).select(F.lit('{"n": 1}').alias("value"), F.rand()).select(refused)
        for each in (simple, gone_through(simple)):
            with pytest.raises(PySparkException, match=reason):
                each.collect()


def not_simple(rows: DataFrame) -> bool:
    """Whether Spark itself reads the lines."""
    return "Batched: false" in blocks_node(gone_through(rows))


@pytest.mark.long
@pytest.mark.core
def test_what_lines_mean_otherwise_is_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;x\n2;y\n")
    read = spark.read.schema("n BIGINT, word STRING").option("sep", ";")
    assert not not_simple(read.csv(str(tmp_path)))
    for name, value in {
        "nullValue": "x",
        "quote": "'",
        "comment": "#",
        "multiLine": "true",
        "encoding": "UTF-16",
        "lineSep": ";",
        "timestampFormat": "yyyy",
        "locale": "de-DE",
        "maxColumns": "1",
    }.items():
        assert not_simple(spark.read.schema("n BIGINT, word STRING").option(name, value).csv(str(tmp_path)))
    assert not_simple(spark.read.schema("n BIGINT, word BINARY").csv(str(tmp_path)))
    assert not_simple(read.csv(str(tmp_path)).where("n > 1"))
    with settings(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
        assert not_simple(read.csv(str(tmp_path)))
    for name, value in {"allowComments": "true", "dateFormat": "yyyy", "multiLine": "true"}.items():
        assert not_simple(spark.read.schema("n BIGINT").option(name, value).json(str(tmp_path)))
    with_default = StructType().add("n", "long", metadata={"EXISTS_DEFAULT": "7", "CURRENT_DEFAULT": "7"})
    assert not_simple(spark.read.schema(with_default).json(str(tmp_path)))
    plain = read.csv(str(tmp_path)).mapInArrow(through, "n BIGINT, word STRING")
    assert "Batched: false" in plain._jdf.queryExecution().executedPlan().toString()


def test_rows_before_damage_come(spark: SparkSession, tmp_path: Path) -> None:
    """As from Spark, which may be told to go on with the next file."""
    whole = gzip.compress("".join(f"{n},{n * 7919 % 10007}\n" for n in range(9000)).encode())
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) * 2 // 3])
    rows = spark.read.schema("n BIGINT, m BIGINT").option("ignoreCorruptFiles", "true").csv(str(tmp_path))
    assert 1000 < assert_read_alike(rows) < 9000


STATEMENTS = """
CREATE OR REPLACE STREAM a (n BIGINT, at TIMESTAMP, x DOUBLE) USING {form} OPTIONS (path '{folder}/a' {more})
    WATERMARK at DELAY OF '2 seconds';
CREATE OR REPLACE STREAM b (n BIGINT, at TIMESTAMP, _corrupt_record STRING)
    USING {form} OPTIONS (path '{folder}/b' {more}) WATERMARK at DELAY OF '2 seconds';
CREATE OR REPLACE SINK pairs USING memory;
INSERT INTO pairs SELECT A.n, A.x, B.at, B._corrupt_record AS broken FROM a A, b B WINDOW (A, B) = 5 SECONDS
    WHERE A.n = B.n AND A.x < 80;
"""

FIRST = {
    "csv": "{n},2024-01-01 00:00:{second:02},{x}",
    "json": '{{"n": {n}, "at": "2024-01-01 00:00:{second:02}", "x": {x}}}',
}
SECOND = {
    "csv": "{n},2024-01-01T00:00:{second:02}Z",
    "json": '{{"at":"2024-01-01T00:00:{second:02}Z","n":{n}}}',
}
BROKEN = {
    "csv": [
        *("1,yesterday,5", "x,2024-01-01 00:00:05,5", "2", "2,2024-01-01 00:00:07,x", "", '"1","', "3,,"),
        *("2,2024-01-01 00:00:07,3,4",),
    ],
    "json": [
        *('{"n":1,"at":"yesterday","x":5}', '{"n":2}', "", '{"n":3,"at":null}', "[]", "1"),
        *('{"n":"x","at":"2024-01-01 00:00:05","x":5}', '{"n":2,"at":"2024-01-01 00:00:07","x":"y","z":'),
        *('{"n":2,"at":"2024-01-01 00:00:07","n":"x"}', '{"n":2,"at":"2024-01-01 00:00:08","x":"y"}'),
        '[{"n":1,"at":"2024-01-01 00:00:09"},{"n":1}]',
    ],
}


NULL_TIMES = {"csv": 8, "json": 12}


@pytest.mark.core
@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_streams_of_lines_join_and_count_alike(session: wjoin.Session, tmp_path: Path, form: str) -> None:
    """Broken lines and rows without a time are counted, read by wjoin or, with an option, by Spark."""
    for name, line in (("a", FIRST[form]), ("b", SECOND[form])):
        (tmp_path / name).mkdir()
        lines = [line.format(n=n % 5, second=n, x=n * 2) for n in range(50)]
        (tmp_path / name / f"1.{form}").write_text("\n".join([*lines, *BROKEN[form]]))
    outcomes = []
    for more in ("", ", locale 'en-US'"):
        text = STATEMENTS.format(form=form, folder=tmp_path, more=more)
        query = session.run_script(text, once=True, checkpoint=str(tmp_path / f"state{len(outcomes)}"))[-1]
        plan = query._jsq.explainInternal(False)
        assert plan.count("Batched: true") == (0 if more else 2), plan
        reports = [progress.read(each) for each in query.recentProgress]
        counts = [(each.rows_in, each.null_times, each.late) for each in reports]
        rows = sorted(map(str, session.spark.table("pairs").collect()))
        outcomes.append((rows, counts))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][0]) > 100
    assert any("broken='" in each for each in outcomes[0][0])
    assert sum(sum(nulls.values()) for _, nulls, _ in outcomes[0][1]) == NULL_TIMES[form]
