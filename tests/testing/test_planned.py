"""Plans and blocks without Spark give what a join of the rows gives."""

import numpy as np
import pytest

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts

pytestmark = pytest.mark.long

COLUMNS = {"k": "bigint", "name": "string"}
SQL = "SELECT A.k, A.name AS a, B.name AS b FROM s A, s B WINDOW = 10 MICROSECONDS WHERE {}"
LEFT = {"ts": np.array([0, 100]), "k": np.array([1, 2]), "name": ["one", "two"]}
RIGHT = {"ts": np.array([5, 105, 111]), "k": np.array([1, 1, 2]), "name": ["x", "y", "z"]}


@pytest.mark.parametrize(
    ("where", "wanted"), [("A.k = B.k", [("one", "x")]), ("A.k > B.k", [("two", "y")])], ids=["key", "none"]
)
def test_blocks_have_what_the_plan_reads(where: str, wanted: list[tuple[str, str]]) -> None:
    plan = plan_over(SQL.format(where), [stream_of(COLUMNS)] * 2).physical
    blocks = {number: block_of(plan, number, rows) for number, rows in enumerate((LEFT, RIGHT))}
    counts = Counts()
    local = LocalWorkers(plan)
    (found,) = [each for each in local.run(blocks, counts) if each.num_rows]
    names = [
        next(name for name in found.column_names if found[name].to_pylist()[0] == value)
        for value in wanted[0]
    ]
    assert list(zip(*(found[name].to_pylist() for name in names), strict=True)) == wanted
    ((load,),) = local.loads
    assert (load.rows, load.kept, load.compared) == (5, local.state_rows, counts.stage["comparisons"])


def test_a_key_that_is_hashed_is_refused() -> None:
    plan = plan_over(SQL.format("A.name = B.name"), [stream_of(COLUMNS)] * 2).physical
    with pytest.raises(ValueError, match="are not the values of a column"):
        block_of(plan, 0, LEFT)


def test_only_a_query_is_planned() -> None:
    with pytest.raises(TypeError, match="no query"):
        plan_over("SHOW STREAMS", [])
