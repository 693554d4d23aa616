"""A checkpoint that is not the statement's is refused when the query starts, with or without new data."""

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import wjoin
from tests.tiers import tiers
from wjoin.measured.beside import Beside
from wjoin.measured.kept import IDENTITY

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

JOIN = "SELECT A.k, B.v FROM ma A, mb B WINDOW = {} WHERE A.k = B.k"
INSERT = f"INSERT INTO out {JOIN}"


@pytest.fixture
def in_store(session: wjoin.Session) -> None:
    """Queries keep their state in Spark's store."""
    session.sql("SET wjoin.state = spark")


@pytest.fixture
def begun(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """A query into a folder of Parquet that has worked off all that there is."""
    for name in ("ma", "mb"):
        more(session, tmp_path, name, 0)
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP) USING parquet "
            f"OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF INTERVAL 1 SECOND"
        )
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")
    run(session, INSERT.format("1 SECOND"))
    assert rows(session, tmp_path) == 20
    return session


def more(session: wjoin.Session, folder: Path, name: str, start: int) -> None:
    new = session.range(start, start + 20, 1, 1).selectExpr(
        "id AS k", "id AS v", "timestamp_seconds(id) AS ts"
    )
    new.write.mode("append").parquet(str(folder / name))


def run(session: wjoin.Session, statement: str) -> None:
    session.run_script(statement)


def rows(session: wjoin.Session, folder: Path) -> int:
    return session.read.parquet(str(folder / "out")).count()


def refused(session: wjoin.Session, statement: str) -> wjoin.WJoinError:
    offsets = len(session.queries)
    with pytest.raises(wjoin.WJoinError) as told:
        run(session, statement)
    assert len(session.queries) == offsets, "nothing has been started"
    return told.value


@pytest.mark.quick
def test_a_changed_window_is_refused_without_new_data(begun: wjoin.Session, tmp_path: Path) -> None:
    error = refused(begun, INSERT.format("2 SECONDS"))
    assert error.code == "WJ702"
    checkpoint = tmp_path / "checkpoints" / "out"
    assert f"the checkpoint {checkpoint} of out was written by another statement" in error.message
    assert "it had «window: B - A <= 1 s», this one has «window: B - A <= 2 s»" in error.message
    shown = error.render().splitlines()
    assert shown[1].strip() == "--> <sql>:1:13"
    assert shown[-1].startswith("help: start from a new checkpoint folder")


FIRST = """INSERT INTO out SELECT {hint} A.k, A.ts, B.v FROM ma A, mb B WINDOW = 1 SECOND
WHERE A.k = B.k AND A.v < 1000 AND A.k <= B.v AND A.v + B.k >= 0"""
SPELLINGS = (
    """insert into out -- formatted
       select {hint} a.k, a.ts, b.v from ma as a join mb as b on b.k == a.k window = interval '1' second
       where /* a filter */ `a`.v<1000 and a.K <= b.v and a.v + b.k >= 0""",
    """INSERT INTO out SELECT {hint} x.k, x.ts, b.v FROM ma x, mb AS b WINDOW (x, b) = 1000 MILLISECONDS
       WHERE x.v + b.k >= 0 AND b.v >= x.k AND b.k = x.k AND x.v < 1000""",
)


@pytest.mark.parametrize("hint", tiers(["", "/*+ PLAN(NATIVE) */", "/*+ PLAN(PSP) */"], long=[""]))
def test_another_spelling_goes_on(session: wjoin.Session, tmp_path: Path, hint: str) -> None:
    """Rows of the state are joined with those that come after a restart under another text."""

    def declare(columns: str) -> None:
        for name in ("ma", "mb"):
            session.sql(
                f"CREATE OR REPLACE STREAM {name} ({columns}) USING parquet "
                f"OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF INTERVAL 1 SECOND"
            )

    for name in ("ma", "mb"):
        # Spark's own joins take rows of 1970's first second for late.
        more(session, tmp_path, name, 100)
    declare("k BIGINT, v BIGINT, ts TIMESTAMP")
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")
    run(session, FIRST.format(hint=hint))
    for number, text in enumerate((*SPELLINGS, SPELLINGS[0], FIRST)):
        # What one stream sends now waits for the other one, which sends it after the next restart.
        start = 120 + 20 * (number // 2)
        more(session, tmp_path, ("ma", "mb")[number % 2], start)
        if number == 1:
            declare("ts TIMESTAMP, v BIGINT, k BIGINT")
        run(session, text.format(hint=hint))
        assert rows(session, tmp_path) == 20 + 20 * ((number + 1) // 2)
    assert "A.v < 1000" in refused(session, FIRST.format(hint=hint).replace("1000", "1001")).message


def test_a_computed_column_that_has_changed_is_named(session: wjoin.Session, tmp_path: Path) -> None:
    for name in ("ma", "mb"):
        more(session, tmp_path, name, 0)
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")

    def declare(seconds: str) -> None:
        for name in ("ma", "mb"):
            session.sql(
                f"CREATE OR REPLACE STREAM {name} (k BIGINT, v BIGINT, at AS timestamp_seconds({seconds})) "
                f"USING parquet OPTIONS (path '{tmp_path / name}') WATERMARK at DELAY OF '1 second'"
            )

    declare("v")
    run(session, INSERT.format("1 SECOND"))
    declare("v + 5")
    assert (
        "this one has «ma.at timestamp_seconds (v + 5)»"
        in refused(session, INSERT.format("1 SECOND")).message
    )
    declare("v")
    run(session, INSERT.format("1  SECOND").replace("SELECT", "SELECT /* the same */"))
    assert rows(session, tmp_path) == 20


@pytest.mark.long
def test_other_changes_are_named(begun: wjoin.Session) -> None:
    same = INSERT.format("1 SECOND")
    changes = {
        f"{same} AND A.v > 3": "A: filters",
        same.replace("B.v", "B.v, A.v AS w"): "the state does not have the column v of A",
        same.replace("SELECT", "SELECT /*+ PLAN(NATIVE) */"): "method native",
        same.replace("mb B", "mb B, mb C"): "it had «2 streams, method multiway», this one has «3 streams",
        f"{same} AND A.k + A.v > B.v": "A: columns A.k, A.v",
        "INSERT INTO out SELECT * FROM ma": "it had 1 window joins, this one has 0",
    }
    for statement, difference in changes.items():
        error = refused(begun, statement)
        assert error.code == "WJ702"
        assert difference in error.message


def test_a_delay_that_has_changed_is_named(begun: wjoin.Session, tmp_path: Path) -> None:
    begun.sql(
        f"CREATE OR REPLACE STREAM mb (k BIGINT, v BIGINT, ts TIMESTAMP) USING parquet "
        f"OPTIONS (path '{tmp_path / 'mb'}') WATERMARK ts DELAY OF INTERVAL 3 SECONDS"
    )
    assert "«B: event time ts, delay 3 s»" in refused(begun, INSERT.format("1 SECOND")).message


def test_another_number_of_partitions_is_refused(begun: wjoin.Session) -> None:
    begun.spark.conf.set("spark.sql.shuffle.partitions", "3")
    error = refused(begun, INSERT.format("1 SECOND"))
    assert (error.code, error.help) == (
        "WJ703",
        "set spark.sql.shuffle.partitions to 2 before the query starts and keep PLAN as it was; or rewrite "
        "the checkpoint for another number: wjoin checkpoint repartition",
    )


def test_another_state_format_is_refused(begun: wjoin.Session, tmp_path: Path) -> None:
    beside = Beside(begun.spark, str(tmp_path / "checkpoints" / "out"))
    number, value = beside.read(IDENTITY)
    beside.write(IDENTITY, number + 1, {**value, "state": 99})
    assert refused(begun, INSERT.format("1 SECOND")).code == "WJ701"


def test_the_same_statement_with_other_hints_goes_on(begun: wjoin.Session, tmp_path: Path) -> None:
    for name in ("ma", "mb"):
        more(begun, tmp_path, name, 20)
    run(begun, INSERT.format("1 SECOND").replace("SELECT", "SELECT /*+ ALGORITHM(MW), BOUNDS(LCA) */"))
    assert rows(begun, tmp_path) == 40


@pytest.mark.usefixtures("in_store")
def test_a_checkpoint_that_has_kept_nothing_is_compared_by_the_workers(
    begun: wjoin.Session, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "checkpoints" / "out" / "wjoin")
    run(begun, INSERT.format("1 SECOND"))
    for name in ("ma", "mb"):
        more(begun, tmp_path, name, 20)
    with pytest.raises((wjoin.WJoinError, StreamingQueryException), match="WJ702"):
        run(begun, INSERT.format("2 SECONDS"))
    run(begun, INSERT.format("1 SECOND"))
    assert rows(begun, tmp_path) == 40


def test_a_folder_of_results_that_is_gone_is_refused(begun: wjoin.Session, tmp_path: Path) -> None:
    kept = tmp_path / "elsewhere"
    shutil.move(tmp_path / "out", kept)
    error = refused(begun, INSERT.format("1 SECOND"))
    assert error.code == "WJ611"
    assert "restore the folder" in error.help
    assert str(tmp_path / "checkpoints" / "out") in error.help
    # Either way out works.
    shutil.move(kept, tmp_path / "out")
    run(begun, INSERT.format("1 SECOND"))
    assert rows(begun, tmp_path) == 20
    shutil.rmtree(tmp_path / "out")
    shutil.rmtree(tmp_path / "checkpoints" / "out")
    run(begun, INSERT.format("1 SECOND"))
    assert rows(begun, tmp_path) == 20


@pytest.mark.usefixtures("in_store")
def test_a_query_that_has_committed_nothing_starts_without_a_folder(
    begun: wjoin.Session, tmp_path: Path
) -> None:
    # As after a crash in the first micro-batch, before the sink has written anything.
    shutil.rmtree(tmp_path / "out")
    for name in ("commits", "state"):
        shutil.rmtree(tmp_path / "checkpoints" / "out" / name)
    run(begun, INSERT.format("1 SECOND"))
    assert rows(begun, tmp_path) == 20
