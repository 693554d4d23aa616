"""The same statements in every way of asking Spark: the same rows, and the same text of errors."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.compat.shells import beeline, options, shell, thrift_server
from tests.compat.test_extensions import DECLARED, JOIN, WRONG, rows, views, write_rows
from tests.programs import run_python
from wjoin.commands.spark_shells import extension_settings

__all__ = ["rows"]

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600), pytest.mark.usefixtures("only_server")]

Answers = Mapping[str, tuple[str, ...]]
"""Of each statement the lines of its rows, values with | between; or those of its error."""

MARK = "the answer of"

REFUSED = ["no unit", "no column", "no sink", "no path"]

_PAIR = "a A, b B WINDOW (A, B)"


def statements(folder: Path) -> dict[str, str]:
    """Return twenty statements, by name; those that change something come before those that see it."""
    streams = DECLARED.format(folder / "a")
    return {
        "two streams": f"SELECT A.id, B.id FROM {_PAIR} = 4 SECONDS WHERE A.k = B.k",
        "in a subquery": f"SELECT count(*), sum(id + other) FROM ({JOIN})",
        "directed": "SELECT count(*) FROM a A, b B DWINDOW (A, B) = 2 SECONDS WHERE A.k = B.k",
        "between": f"SELECT count(*) FROM {_PAIR} BETWEEN -3 SECONDS AND 5 SECONDS WHERE A.k = B.k",
        "form 1 of three": "SELECT count(*) FROM a A, b B, a C WINDOW = 4 s WHERE A.k = B.k AND B.k = C.k",
        "a path both ways": "SELECT count(*) FROM a A, b B, a C "
        "PATH (A, B, C) WITHIN (4 SECONDS, 4 SECONDS) BIDIRECTIONAL WHERE A.k = B.k AND B.k = C.k",
        "alternatives": f"SELECT count(*) FROM {_PAIR} = 1 SECOND OR WINDOW (A, B) BETWEEN 4 s AND 8 s "
        "WHERE A.k = B.k",
        "without a key": f"SELECT count(*) FROM {_PAIR} = 4 SECONDS WHERE A.id + B.k * 2 > 9",
        "a hint": f"SELECT /*+ ALGORITHM(MW), BOUNDS(GCA) */ count(*) FROM {_PAIR} = 4 SECONDS "
        "WHERE A.k = B.k",
        "a common table": f"WITH pairs AS ({JOIN}) SELECT other, count(*) FROM pairs GROUP BY other",
        "a view": f"CREATE TEMPORARY VIEW pairs AS {JOIN}",
        "of the view": "SELECT count(*), max(other) FROM pairs WHERE id < 10",
        "a stream": f"CREATE STREAM sa {streams} WATERMARK ts DELAY OF '1 second'",
        "streams": "SHOW STREAMS",
        "explained": "EXPLAIN SELECT A.id FROM sa A, b B WINDOW (A, B) = 4 SECONDS WHERE A.k = B.k",
        "Spark's own window": "SELECT max(r) FROM "
        "(SELECT rank() OVER w AS r FROM a WINDOW w AS (ORDER BY id))",
        "no unit": WRONG,
        "no column": f"SELECT A.di FROM {_PAIR} = 4 SECONDS WHERE A.k = B.k",
        "no sink": "DROP SINK nowhere",
        "no path": f"SELECT A.id FROM {_PAIR} = 4 SECONDS, a C",
    }


def names() -> list[str]:
    return list(statements(Path()))


def blocks(said: str) -> Answers:
    """Return what a shell has said after each mark, which it answers before each statement."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in said.splitlines():
        if (mark := re.search(rf"{MARK} (\d+)", line)) is not None:
            name = names()[int(mark[1])] if int(mark[1]) < len(names()) else ""
            found[name] = []
        elif name and re.match(r"Time taken: |\d\d/\d\d/\d\d [\d:]+ WARN ", line) is None:
            # Beeline tells so of what has no rows.
            found[name].append(re.sub("^(null)+", "", line.rstrip()))
    return {name: tuple(said) for name, said in found.items() if name}


def script(folder: Path) -> list[str]:
    """Return the statements with a mark before each, and one after all, for shells that read SQL."""
    texts = views(folder)
    for number, text in enumerate(statements(folder).values()):
        texts += [f"SELECT '{MARK} {number}'", text]
    return [*texts, f"SELECT '{MARK} {len(names())}'"]


PYTHON = """
from pyspark.sql import SparkSession

builder = SparkSession.builder.{start}.config("spark.sql.shuffle.partitions", "2")
for name, value in {settings}.items():
    builder = builder.config(name, value)
{enabled}
spark = builder.getOrCreate()
for view in {views}:
    spark.sql(view)
for number, text in enumerate({statements}):
    print("{mark}", number)
    try:
        for row in spark.sql(text).collect():
            print("\\t".join("NULL" if each is None else str(each) for each in row))
    except Exception as error:
        print(error)
print("{mark}", number + 1, flush=True)
spark.stop()
"""

SCALA = """
def run(): Unit = {{
  Seq({views}).foreach(text => spark.sql(text))
  for ((text, number) <- Seq({statements}).zipWithIndex) {{
    println("{mark} " + number)
    try spark.sql(text).collect().foreach(row =>
      println(row.toSeq.map(each => if (each == null) "NULL" else each.toString).mkString("\\t")))
    catch {{ case error: Throwable => println(error.getMessage) }}
  }}
  println("{mark} " + {count})
}}
run()
System.exit(0)
"""


def python(folder: Path, start: str, settings: Mapping[str, str], enabled: str = "") -> Answers:
    program = PYTHON.format(
        start=start,
        settings=dict(settings),
        enabled=enabled,
        views=views(folder),
        statements=list(statements(folder).values()),
        mark=MARK,
    )
    done = run_python(folder, "-c", program)
    assert done.returncode == 0, done.stderr[-3000:]
    return blocks(done.stdout)


def in_pyspark(folder: Path) -> Answers:
    return python(
        folder,
        'master("local[2]")',
        {},
        "import wjoin; wjoin.configure(builder); wjoin.enable(builder.getOrCreate())",
    )


def in_pyspark_without_enable(folder: Path) -> Answers:
    return python(folder, 'master("local[2]")', extension_settings())


def by_connect(folder: Path) -> Answers:
    return python(folder, 'remote("local[2]")', extension_settings())


def in_spark_sql(folder: Path) -> Answers:
    file = folder / "all.sql"
    file.write_text(";\n".join(script(folder)) + ";\n")
    going_on = ["--hiveconf", "hive.cli.errors.ignore=true"]
    return blocks(
        shell(folder, "spark-sql", "-S", *options(), *going_on, "-f", str(file), merged=True).stdout
    )


def by_jdbc(folder: Path) -> Answers:
    form = ["--force=true", "--outputformat=tsv2", "--showHeader=false"]
    with thrift_server(folder) as port:
        return blocks(beeline(folder, port, "one", script(folder), *form, merged=True).stdout)


def in_scala(folder: Path) -> Answers:
    file = folder / "all.scala"

    def listed(texts: Sequence[str]) -> str:
        return ", ".join(f'"""{text}"""' for text in texts)

    file.write_text(
        SCALA.format(
            views=listed(views(folder)),
            statements=listed(list(statements(folder).values())),
            mark=MARK,
            count=len(names()),
        )
    )
    return blocks(shell(folder, "spark-shell", *options(), "-i", str(file)).stdout)


@pytest.mark.parametrize(
    "way",
    [in_pyspark_without_enable, by_connect, in_spark_sql, by_jdbc, in_scala],
    ids=lambda way: way.__name__,
)
def test_twenty_statements_have_the_same_answers(
    rows: Path, expected: Answers, way: Callable[[Path], Answers]
) -> None:
    found = way(rows)
    assert list(found) == names()
    differing = [name for name in names() if not same(expected[name], found[name])]
    assert {name: found[name] for name in differing} == {name: expected[name] for name in differing}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """The answers of a session that wjoin has enabled."""
    folder = tmp_path_factory.mktemp("expected")
    write_rows(folder)
    answers = in_pyspark(folder)
    assert list(answers) == names()
    assert answers["in a subquery"] == ("52\t988",)
    assert [name for name, said in answers.items() if said[:1] and said[0].startswith("error[")] == REFUSED
    return {
        name: tuple(each.replace(str(folder), "FOLDER") for each in said) for name, said in answers.items()
    }


def same(expected: tuple[str, ...], found: tuple[str, ...]) -> bool:
    """Return whether an answer has the expected rows, in any order, or tells the expected error."""
    if expected[:1] and expected[0].startswith("error["):
        return "\n".join(expected) in "\n".join(found)
    if sorted(filter(None, expected)) == sorted(filter(None, found)):
        return True
    # Beeline prints a value of several lines as one.
    return "".join(expected) == "".join(found).replace("\0", "")
