"""How a stream at a site travels while a query runs, by what its results tell."""

from pathlib import Path

from tests.plans.test_sites import REMOTE, planned
from wjoin.measured.progress import Progress
from wjoin.sources.site_ways import LEAST_BATCHES, Revising

QUERY = "SELECT A.payload FROM a A {} JOIN b B ON A.id = B.id WINDOW (A, B) = 5 s"
ROWS = 1000


def way_after(kind: str, share: float, folder: Path) -> str | None:
    """Return how A is told to travel after micro-batches in which such a share of its rows came out."""
    found = planned(QUERY.format(kind), REMOTE, REMOTE)
    file = folder / kind
    revising = Revising(0, found, {0: file})
    for batch in range(LEAST_BATCHES):
        stages = {"0.0": {"matches": int(share * ROWS)}}
        revising.add(Progress(query="q", batch=batch, rows_in={"A": ROWS, "B": ROWS}, stages=stages))
    return file.read_text() if file.exists() else None


def test_of_semi_and_anti_joins_each_result_is_a_row(tmp_path: Path) -> None:
    assert way_after("SEMI", 0.1, tmp_path) is None
    assert way_after("SEMI", 1.0, tmp_path) == "full"
    assert way_after("ANTI", 0.1, tmp_path) is None
    assert way_after("ANTI", 1.0, tmp_path) == "full"


def test_of_outer_joins_results_do_not_tell_the_share() -> None:
    """Those without a partner are among them."""
    for kind, revised in (("", True), ("SEMI", True), ("ANTI", True), ("RIGHT", False), ("LEFT", False)):
        shown = [each.revisable for each in planned(QUERY.format(kind), REMOTE, REMOTE).shipments]
        assert shown[0] is revised, kind
