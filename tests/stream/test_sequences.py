"""The sequence of stages of a query: chosen at its first start, and the same ever after."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

import wjoin
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import plain, typed
from wjoin.measured.beside import KeptWarning
from wjoin.planner.choose.layouts import Layout

pytestmark = pytest.mark.thorough

SELECT = "SELECT a.k, b.m, c.n FROM a, b, c WINDOW = 1 SECOND WHERE a.k = b.k AND b.m = c.m"
INSERT = f"INSERT INTO out {SELECT}"
FIRST = Layout("$0 [$0 . k] x $1 [$1 . k]; $0 $1 [$1 . m] x $2 [$2 . m]", (None, None))
OTHER = Layout("$1 [$1 . m] x $2 [$2 . m]; $1 $2 [$1 . k] x $0 [$0 . k]", (None, None))


@pytest.fixture
def streams(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """Three streams of 200 rows over 20 s, of which b has few k and many m."""
    write(session, tmp_path, 0)
    for name in "abc":
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, m BIGINT, n BIGINT, ts TIMESTAMP) USING parquet "
            f"OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF INTERVAL 1 SECOND"
        )
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")
    return session


def write(session: wjoin.Session, folder: Path, start: int) -> None:
    for name in "abc":
        rows = session.range(start, start + 200, 1, 1)
        rows = rows.selectExpr("id % 4 AS k", "id % 50 AS m", "id AS n", "timestamp_millis(id * 100) AS ts")
        rows.write.mode("append").parquet(str(folder / name))


def know(session: wjoin.Session, k: int, m: int) -> None:
    """Give statistics that make the class of few values the worse one to begin with."""
    for name in "abc":
        session.sql(f"ALTER STREAM {name} SET STATISTICS (distinct.k = {k}, distinct.m = {m})")


def first_stage(text: str) -> str:
    return next(line.strip() for line in text.splitlines() if line.startswith("  1: ") and " x " in line)


def kept(folder: Path) -> list[Layout]:
    (found,) = (folder / "checkpoints" / "out" / "wjoin" / "layouts").glob("*/*.txt")
    return [typed(Layout, each) for each in json.loads(found.read_text())["value"]]


def results_are_right(session: wjoin.Session, folder: Path) -> None:
    """Compare what was written with what the same join finds over the files as tables."""
    for name in "abc":
        session.stream(f"t{name}", session.read.parquet(str(folder / name)), "ts")
    over_tables = SELECT.replace("FROM a, b, c", "FROM ta AS a, tb AS b, tc AS c")
    expected = Counter(map(tuple, session.sql(over_tables).collect()))
    written = Counter(map(tuple, session.read.parquet(str(folder / "out")).select("k", "m", "n").collect()))
    assert written == expected
    assert written


def test_the_first_start_chooses_and_later_ones_stay_with_it(streams: wjoin.Session, tmp_path: Path) -> None:
    know(streams, k=2, m=100_000)
    assert first_stage(streams.explain(f"EXPLAIN {INSERT}")).startswith("1: b [b.m] x c [c.m]")
    assert first_stage(streams.explain(SELECT)).startswith("1: a [a.k] x b [b.k]")
    shown = streams.explain(f"EXPLAIN COST {SELECT}")
    assert "b c first" in shown
    assert "needs a new checkpoint" in shown
    # What a start that was cut off has left beside a checkpoint without a query binds nobody.
    left = tmp_path / "checkpoints" / "out" / "wjoin" / "layouts" / "1"
    left.mkdir(parents=True)
    (left / "part.txt").write_text(json.dumps({"format": 1, "number": 1, "value": [plain(FIRST)]}))
    streams.run_script(INSERT)
    assert kept(tmp_path) == [OTHER]

    know(streams, k=100_000, m=2)
    assert first_stage(streams.explain(f"EXPLAIN {INSERT}")).startswith("1: b [b.m] x c [c.m]")
    assert "its stages or routes differ from the checkpoint's" in streams.explain(f"EXPLAIN COST {INSERT}")
    write(streams, tmp_path, 200)
    streams.run_script(INSERT)
    assert kept(tmp_path) == [OTHER]
    results_are_right(streams, tmp_path)


def test_a_checkpoint_of_an_earlier_version_has_the_statement_s_own_sequence(
    streams: wjoin.Session, tmp_path: Path
) -> None:
    streams.run_script(INSERT)
    assert kept(tmp_path) == [FIRST]
    folder = tmp_path / "checkpoints" / "out" / "wjoin" / "layouts"
    know(streams, k=2, m=100_000)
    shutil.rmtree(folder)
    assert first_stage(streams.explain(f"EXPLAIN {INSERT}")).startswith("1: a [a.k] x b [b.k]")
    write(streams, tmp_path, 200)
    streams.run_script(INSERT)
    results_are_right(streams, tmp_path)

    folder.mkdir()
    (folder / "part.txt").write_text("not of wjoin")
    with pytest.warns(KeptWarning, match="cannot be read"):
        assert first_stage(streams.explain(f"EXPLAIN {INSERT}")).startswith("1: a [a.k] x b [b.k]")


def test_another_statement_on_the_checkpoint_is_still_refused(streams: wjoin.Session, tmp_path: Path) -> None:
    streams.run_script(INSERT)
    write(streams, tmp_path, 200)
    with pytest.raises(WJoinError, match="WJ702"):
        streams.run_script(INSERT.replace("b.m = c.m", "b.n = c.n"))
