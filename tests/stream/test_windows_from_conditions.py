"""Joins of streams without a window clause: their conditions are windows, in every way of running them."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import wjoin
from wjoin.grammar.errors import WJoinError, WJoinWarning

STREAMS = """
CREATE STREAM imp (id BIGINT, ts TIMESTAMP, n INT) USING json OPTIONS (path '{0}/imp', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE STREAM clk (id BIGINT, ts TIMESTAMP, n INT) USING json OPTIONS (path '{0}/clk', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
"""
LISTED = "SELECT I.n, C.n AS m FROM imp I"
INNER = f"{LISTED} JOIN clk C ON I.id = C.id AND C.ts BETWEEN I.ts AND I.ts + INTERVAL 3 SECONDS"
INNER_FORM = "SELECT I.n, C.n AS m FROM imp I, clk C DWINDOW (I, C) = 3 SECONDS WHERE I.id = C.id"
CUT = "abs(timestampdiff(SECOND, I.ts, C.ts)) < 2"
PAIRS = {
    "inner": (INNER, INNER_FORM),
    "strict": (
        f"{LISTED}, clk C WHERE I.id = C.id AND C.ts > I.ts AND C.ts - I.ts < INTERVAL 2 SECONDS",
        "SELECT I.n, C.n AS m FROM imp I, clk C WINDOW (I, C) BETWEEN 1 us AND 1999999 us WHERE I.id = C.id",
    ),
    "left": (
        f"SELECT I.n, C.n AS m FROM imp I LEFT JOIN clk C ON I.id = C.id AND {CUT}",
        "SELECT I.n, C.n AS m FROM imp I LEFT JOIN clk C ON I.id = C.id WINDOW (I, C) = 1999999 us",
    ),
    "within": (
        "SELECT I.n, C.n AS m FROM imp I FULL JOIN clk C WITHIN (1 SECOND, 2 SECONDS) ON I.id = C.id",
        "SELECT I.n, C.n AS m FROM imp I FULL JOIN clk C ON I.id = C.id WINDOW (I, C) BETWEEN -1 s AND 2 s",
    ),
    "asof": (
        "SELECT I.n, C.n AS m FROM imp I ASOF JOIN clk C MATCH_CONDITION (I.ts >= C.ts) "
        "ON I.id = C.id AND C.ts >= I.ts - INTERVAL 2 SECONDS",
        "SELECT I.n, C.n AS m FROM imp I ASOF JOIN clk C MATCH_CONDITION (I.ts >= C.ts) "
        "ON I.id = C.id WINDOW (I, C) = 2 SECONDS",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two streams of 60 rows in three files each, half a second apart, of five keys."""
    for shift, name in enumerate(("imp", "clk")):
        (tmp_path / name).mkdir()
        for file in range(3):
            rows = [
                {"id": n * (shift + 1) % 5, "ts": f"2024-01-01T00:00:{n // 2:02}.{n % 2 * 5}Z", "n": n}
                for n in range(file * 20, file * 20 + 20)
            ]
            (tmp_path / name / f"{file}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def declared(session: wjoin.Session, folder: Path) -> wjoin.Session:
    session.run_script(STREAMS.format(folder))
    return session


@pytest.fixture
def inserted(declared: wjoin.Session, folder: Path) -> Callable[[str], Counter[tuple[object, ...]]]:
    def run(select: str) -> Counter[tuple[object, ...]]:
        name = f"out{len(list(folder.glob('out*')))}"
        sink = f"CREATE SINK {name} USING parquet OPTIONS (path '{folder}/{name}')"
        script = f"{sink}; INSERT INTO {name} {select}"
        declared.run_script(script, checkpoint=f"{folder}/checkpoints", complete=True)
        return Counter(map(tuple, declared.read.parquet(f"{folder}/{name}").collect()))

    return run


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "inner" else [pytest.mark.long]) for name in PAIRS]
)
def test_rows(inserted: Callable[[str], Counter[tuple[object, ...]]], name: str) -> None:
    words, form = PAIRS[name]
    found = inserted(words)
    assert found
    assert found == inserted(form)


def test_what_is_left_unbounded_is_refused_and_can_be_left_to_spark(declared: wjoin.Session) -> None:
    open_side = "SELECT I.n FROM imp I JOIN clk C ON I.id = C.id AND C.ts >= I.ts"
    with pytest.raises(WJoinError, match="C can be any time after I") as refused:
        declared.sql(open_side)
    assert refused.value.code == "WJ308"
    assert "add AND C.ts <= I.ts + INTERVAL 10 MINUTES" in refused.value.help
    with pytest.raises(WJoinError, match="the cycle I -> C -> I"):
        declared.sql(f"{open_side} AND C.ts < I.ts")
    with pytest.raises(WJoinError, match="I and C are streams, not times"):
        declared.sql(
            "SELECT I.n FROM imp I JOIN clk C ON I.id = C.id AND DATEDIFF(minute, I, C) BETWEEN 0 AND 5"
        )
    declared.sql("SET wjoin.windows_from_where = off")
    for sql in (open_side, INNER):
        with pytest.warns(WJoinWarning, match="joined without a window clause"):
            assert declared.sql(sql).isStreaming
    declared.sql("SET wjoin.windows_from_where = on")
    with pytest.warns(WJoinWarning, match="joined without a window clause"):
        declared.sql("SELECT I.n FROM imp I JOIN clk C ON I.id = C.id")


def test_explain_views_and_other_statements_find_them(declared: wjoin.Session, folder: Path) -> None:
    explained = str(declared.explain(INNER))
    assert "0 s <= C - I <= 3 s  [given by C.ts BETWEEN I.ts AND I.ts + INTERVAL 3 SECONDS]" in explained
    assert declared.sql(f"EXPLAIN {INNER}").first()[0].startswith("Streams")
    declared.sql(f"CREATE VIEW both AS {INNER}")
    assert declared.sql("SELECT * FROM both").isStreaming
    declared.sql(f"CREATE SINK out USING parquet OPTIONS (path '{folder}/out')")
    of_set = f"BEGIN INSERT INTO out {INNER}; END"
    assert "0 s <= C - I <= 3 s" in declared.sql(f"EXPLAIN STATEMENT SET {of_set}").first()[0]
    inner = f"WITH x AS ({INNER}) SELECT count(*) FROM x"
    assert declared.explain(inner).described
    # Plain tables are Spark's.
    declared.read.json(f"{folder}/imp").createOrReplaceTempView("t")
    assert not declared.explain("SELECT * FROM t A, t B WHERE A.id = B.id AND A.ts = B.ts").described


@pytest.mark.long
def test_the_command_line_finds_them(folder: Path) -> None:
    script = folder / "query.sql"
    sink = f"CREATE SINK out USING parquet OPTIONS (path '{folder}/out');"
    script.write_text(f"{STREAMS.format(folder)} {sink} INSERT INTO out {INNER};")
    for command, expected in (
        (["check", str(script)], r"good, 1 window join, starts with checkpoint"),
        (["explain", str(script)], r"0 s <= C - I <= 3 s"),
        (["run", "--once", str(script), "--checkpoint", str(folder / "c")], r"out"),
    ):
        arguments = [*command, *(["--checkpoint", str(folder / "c")] if command[0] == "check" else [])]
        done = subprocess.run(
            [sys.executable, "-m", "wjoin.cli", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert re.search(expected, done.stdout), done.stdout
