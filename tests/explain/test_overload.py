"""What EXPLAIN says of a join that gets too much: what is shed, by what, at what cost, and the limits."""

import pytest

from tests.plans.catalogue import plan
from wjoin.planner.cost.shed_share import Thresholds
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.overload_description import overload_entry
from wjoin.planner.explain.page import page
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.shedding_models import SheddingRules

KEYED = "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 1 HOUR WHERE A.obj_id = B.obj_id"
KEYLESS = "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 1 SECOND WHERE A.ts < B.ts"
LIMITS = SheddingRules("quadratic", Thresholds(0.1, 0.2, 0.5, 0.6, base=0.05), memory=1 << 30, disk=1 << 34)


def lines(sql: str, rules: SheddingRules, *, files: bool = True) -> list[str]:
    """Return the lines of the section."""
    planned = plan(sql)
    document = describe(planned, overload_entry(planned, rules, files=files))
    assert "<h3>Overload</h3>" in page([document], "EXPLAIN")
    return [line.strip() for line in explain_text(document).partition("\nOverload\n")[2].splitlines()]


def test_with_a_key_whole_values_go() -> None:
    first, *streams, cost, memory, disk = lines(KEYED, LIMITS)
    assert first == "A and B: rows are shed above a utilization of 0.5 (quadratic), 5 % of them at least"
    assert streams[0].startswith("A by key, A.obj_id: all rows of a value go; the most frequent has ")
    assert streams[0].endswith(" % of its rows (default)") and len(streams) == 2
    assert cost == "shedding a tenth of the rows loses 10 % of the results, by row 19 %"
    assert memory.startswith("wjoin.memory: 1.07 GB, expected to be ")
    assert memory.endswith(" % full; the used share counts as utilization")
    assert disk == "wjoin.disk: 17.2 GB; the used share counts as utilization"


def test_without_a_key_single_rows_go() -> None:
    assert lines(KEYLESS, SheddingRules("linear")) == [
        "A and B: rows are shed above a utilization of 0.8 (linear)",
        "A by row: it has no key",
        "B by row: it has no key",
        "shedding a tenth of the rows loses 19 % of the results",
    ]


def test_a_limit_alone_ends_the_query() -> None:
    (memory,) = lines(KEYED, SheddingRules(memory=1 << 30))
    assert memory.endswith("; above that the query ends (WJ725)")


def test_what_cannot_shed_is_told() -> None:
    (refused,) = lines(KEYED, SheddingRules("linear"), files=False)
    assert refused.startswith("rows cannot be shed, so the query is refused (WJ724): its state is in Spark's")


@pytest.mark.parametrize("rules", [SheddingRules(), SheddingRules(disk=1 << 34)])
def test_nothing_is_said_where_nothing_happens(rules: SheddingRules) -> None:
    assert overload_entry(plan(KEYED), rules, files=False) is None
