"""Checkpoints that earlier versions have written: a query goes on from them, or is refused with a true word.

tests/checkpoints/write.py says what a stored checkpoint is, and writes one: for the state format 8,
``python -m tests.checkpoints.write 8``, once and before anything is released that writes it. What becomes of
it stands in ``EXPECTED``.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import wjoin
from tests.checkpoints.write import FOLDER, HERE, add_rows, unpack
from tests.tiers import tiers
from wjoin.executor.state.identity import STATE_FORMAT

pytestmark = pytest.mark.thorough


@dataclass(frozen=True)
class Refused:
    """The query is refused, with a code and a message that has these words."""

    code: str
    words: str


GOES_ON = None
"""The query goes on, and its results are those of all rows."""

EXPECTED: dict[str, Refused | None] = {
    "6": Refused("WJ701", "has state format 6; this version of wjoin reads 8"),
    "7": Refused("WJ701", "has state format 7; this version of wjoin reads 8"),
    "8": GOES_ON,
}
"""What becomes of each stored checkpoint; for one that is read no more ``Refused("WJ701", "…")``."""

ORACLE = """
SELECT O.id, V.id, D.id, (greatest(O.file, V.file, D.file) >= {first}
    AND least(O.file, V.file, D.file) < {first}) AS over_both
FROM rows_orders O, rows_visits V, rows_doors D
WHERE O.shop = V.shop AND V.badge = D.badge AND O.price < D.price
  AND abs(epoch_ms(O.ts) - epoch_ms(V.ts)) <= 10000 AND abs(epoch_ms(V.ts) - epoch_ms(D.ts)) <= 8000
"""


@pytest.mark.long
def test_every_stored_checkpoint_has_an_expectation_and_the_newest_format_is_stored() -> None:
    stored = {path.parent.name for path in HERE.glob("*/checkpoint.tar.gz")}
    assert stored == set(EXPECTED)
    assert max(map(int, stored)) == STATE_FORMAT
    assert EXPECTED[str(STATE_FORMAT)] is GOES_ON


def cases(*ways: str, refused: bool) -> list[tuple[str, str]]:
    return [
        (name, way) for name, found in EXPECTED.items() if (found is not GOES_ON) == refused for way in ways
    ]


STOPPED, CRASHED = "goes on after a stop", "goes on after a crash"
REFUSED = "refused by what is kept beside it"
CASES = [*cases(STOPPED, CRASHED, refused=False), *cases(REFUSED, refused=True)]


@pytest.mark.parametrize(
    ("name", "way"),
    tiers(CASES, quick=[(str(STATE_FORMAT), CRASHED)], long=cases(REFUSED, refused=True)),
)
def test_a_stored_checkpoint(session: wjoin.Session, tmp_path: Path, name: str, way: str) -> None:
    folder, checkpoint = HERE / name, tmp_path / "checkpoints" / "found"
    restore(folder, tmp_path)
    if way == CRASHED:
        # The last micro-batch is without its commit, so that this version repeats it.
        max((checkpoint / "commits").iterdir(), key=lambda path: int(path.name)).unlink()
    add_rows(folder / "after", tmp_path)
    refused = EXPECTED[name]
    if refused is None:
        assert_goes_on(session, folder, tmp_path)
    else:
        assert_refused(session, folder, tmp_path, refused)
        assert not session.queries, "its identity is compared before anything starts"


def assert_goes_on(session: wjoin.Session, folder: Path, root: Path) -> None:
    run(session, folder, root)
    expected, over_both = oracle(folder)
    assert over_both > 50, "rows of the state are joined with new ones"
    assert results(session, root) == expected


def assert_refused(session: wjoin.Session, folder: Path, root: Path, refused: Refused) -> None:
    with pytest.raises(wjoin.WJoinError) as told:
        run(session, folder, root)
    assert told.value.code == refused.code, told.value.message
    assert refused.words in told.value.message


def restore(folder: Path, root: Path) -> None:
    unpack(folder, root)
    add_rows(folder / "before", root)
    left = [path for path in root.rglob("*") if path.is_file() and FOLDER.encode() in path.read_bytes()]
    assert left == []


def run(session: wjoin.Session, folder: Path, root: Path) -> None:
    text = (folder / "statement.sql").read_text().format(folder=root)
    session.run_script(text, checkpoint=str(root / "checkpoints"))


def results(session: wjoin.Session, root: Path) -> Counter[tuple[int, ...]]:
    rows = session.read.schema("orders BIGINT, visits BIGINT, doors BIGINT").json(str(root / "found"))
    return Counter(map(tuple, rows.collect()))


def oracle(folder: Path) -> tuple[Counter[tuple[int, ...]], int]:
    """Return the results over all rows, and how many join rows of both parts."""
    after = min(int(path.stem) for path in folder.glob("after/*/*.json"))
    connection = duckdb.connect()
    for name in ("orders", "visits", "doors"):
        connection.execute(
            f"CREATE VIEW rows_{name} AS SELECT *, CAST(parse_filename(filename, true) AS INT) AS file "
            f"FROM read_json('{folder}/*/{name}/*.json', filename = true)"
        )
    found = connection.execute(ORACLE.format(first=after)).fetchall()
    connection.close()
    return Counter(row[:3] for row in found), sum(row[3] for row in found)
