"""Results of every kind of join fetch the columns of rows that came partially: of no other row, and once."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over
from tests.plans.test_sites import REMOTE
from tests.tiers import examples
from wjoin.executor.counts import Counts
from wjoin.executor.sites import fetching, mirror
from wjoin.executor.sites.mirror import Mirror
from wjoin.executor.sites.stream import SiteStream, numbered
from wjoin.executor.spark.unpack import Unpack, flat_name, replaced
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.statement_kinds import ROW_NUMBER
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.sites.protocol import SiteAddress

SECOND = 1_000_000
SIDES = "AB"
Row = tuple[int, int, int, bool]
"""The number of a row at its site, its event time in seconds, its key, and whether it comes partially."""


def note(side: int, number: int) -> str:
    return f"{SIDES[side]} {number}"


@dataclass
class Sites:
    """Answers for the sites of both streams, and knows which rows it was asked for."""

    asked: list[list[int]] = field(default_factory=lambda: [[], []])

    def full(
        self, stream: str, lineage: str, numbers: Sequence[int], columns: Sequence[str]
    ) -> pa.RecordBatch:
        assert (lineage, tuple(columns)) == ("line", ("note",))
        side = SIDES.index(stream)
        self.asked[side] += list(numbers)
        return pa.RecordBatch.from_pydict({"note": [note(side, number) for number in numbers]})


@st.composite
def batches(draw: st.DrawFn) -> list[list[list[Row]]]:
    """Draw the micro-batches of both streams."""
    numbers = iter(range(10_000))
    row = st.tuples(st.integers(-6, 6), st.integers(0, 2), st.booleans())
    return [
        [
            [(next(numbers), 5 * step + time, *rest) for time, *rest in draw(st.lists(row, max_size=6))]
            for _ in SIDES
        ]
        for step in range(draw(st.integers(1, 6)))
    ]


def block(plan: PhysicalPlan, side: int, rows: Sequence[Row]) -> pa.RecordBatch:
    numbers = [int(numbered(0, np.int64(number), partial=partial)) for number, _, _, partial in rows]
    return block_of(
        plan,
        side,
        {
            "ts": pa.array([time * SECOND for _, time, _, _ in rows], pa.int64()),
            "id": pa.array([key for _, _, key, _ in rows], pa.int64()),
            "note": pa.array([None if partial else note(side, n) for n, _, _, partial in rows], pa.string()),
            ROW_NUMBER: pa.array(numbers, pa.int64()),
        },
    )


def results(
    plan: PhysicalPlan, given: Sequence[Sequence[Sequence[Row]]], unpack: Unpack
) -> Iterator[tuple[object, ...]]:
    """Yield the results of all micro-batches, and of the end."""
    workers = LocalWorkers(plan)
    for batch in (*given, None):
        rows = {side: block(plan, side, own) for side, own in enumerate(batch or ()) if own}
        made = workers.run(rows, Counts(), ended=batch is None)
        for found in unpack.unpacked(iter(made)):
            yield from zip(*found.select(unpack.schema.names).to_pydict().values(), strict=True)


@pytest.mark.parametrize("kind", [each for each in JoinKind if not each.asof])
def test_results_have_the_columns_of_rows_that_came_partially(kind: JoinKind, tmp_path: Path) -> None:
    listed = "A.note AS a" if kind.one_sided else "A.note AS a, B.note AS b"
    written = "" if kind is JoinKind.INNER else kind.value.removesuffix(" OUTER")
    text = f"""SELECT {listed} FROM a A {written} JOIN b B ON A.id = B.id
        WINDOW (A, B) BETWEEN -2 SECONDS AND 4 SECONDS"""
    plan = plan_over(text, [REMOTE, REMOTE]).physical
    (output,) = plan.outputs
    schema = pa.schema([(flat_name(*each), pa.string()) for each in output.columns])
    address = SiteAddress("grpc://there:1")
    at = {side: SiteStream((address,), SIDES[side], ("line",)) for side in range(len(SIDES))}
    unpack = Unpack(plan, output, schema, sites=at)
    folders = iter(range(100_000))

    @settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(batches())
    def run(drawn: list[list[list[Row]]]) -> None:
        whole = [[[(*row[:3], False) for row in own] for own in batch] for batch in drawn]
        site, place = Sites(), tmp_path / str(next(folders))
        with (
            patch.object(fetching, "client_of", lambda _: site),
            # Also where the disk is nearly full.
            patch.object(mirror, "FREE_SHARE", 0.0),
            patch.object(Unpack, "_mirror", lambda _, stream: Mirror(place / str(stream))),
        ):
            expected = Counter(results(plan, whole, unpack))
            assert site.asked == [[], []]
            assert Counter(results(plan, drawn, unpack)) == expected
        shown = {value for result in expected for value in result}
        for side, asked in enumerate(site.asked):
            partial = {row[0] for batch in drawn for row in batch[side] if row[3]}
            assert sorted(asked) == sorted(each for each in partial if note(side, each) in shown)

    run()


@pytest.mark.parametrize(
    ("where", "spared"),
    [
        ("B.ts IS NULL", True),
        ("B.id IS NULL AND A.id > 0", True),
        # A row of B may have none.
        ("B.note IS NULL", False),
        ("B.ts IS NULL OR A.id > 0", False),
        ("coalesce(B.ts, A.ts) IS NULL", False),
        ("B.id IS NOT NULL", False),
    ],
)
def test_of_rows_that_may_have_no_partner_in_a_result_only_those_are_fetched(
    where: str, spared: bool, tmp_path: Path
) -> None:
    """The row 0 has a partner, the row 1 none."""
    text = f"""SELECT A.note AS a, B.note AS b FROM a A LEFT JOIN b B ON A.id = B.id
        WINDOW (A, B) = 2 SECONDS WHERE {where}"""
    plan = plan_over(text, [REMOTE, REMOTE]).physical
    (output,) = plan.outputs
    assert output.lacked == ({1} if spared else set())
    schema = pa.schema([(flat_name(*each), pa.string()) for each in output.columns])
    at = {n: SiteStream((SiteAddress("grpc://there:1"),), side, ("line",)) for n, side in enumerate(SIDES)}
    unpack, site = Unpack(plan, output, schema, sites=at), Sites()
    batch = [[(0, 1, 1, True), (1, 1, 2, True)], [(0, 1, 1, True)]]
    with (
        patch.object(fetching, "client_of", lambda _: site),
        patch.object(Unpack, "_mirror", lambda _, stream: Mirror(tmp_path / str(stream))),
    ):
        found = list(results(plan, [batch], unpack))
    assert any("A 1" in each for each in found)
    assert sorted(site.asked[0]) == ([1] if spared else [0, 1])
    assert site.asked[1] == ([] if spared else [0])


ITEMS = pa.list_(pa.int64())
NAMED = pa.struct([("x", pa.int64()), ("y", pa.string())])


@pytest.mark.parametrize(
    ("kind", "known", "values"),
    [
        (pa.string(), ["a", None, "c", None], ["B", None]),
        # As Spark names the values of a list.
        (pa.list_(pa.field("element", pa.int64())), [[1, None], None, [], None], [[4], None]),
        (NAMED, [{"x": 1, "y": None}, None, None, None], [{"x": None, "y": "b"}, {"x": 2, "y": "c"}]),
        (pa.map_(pa.string(), ITEMS), [[("a", [1])], None, [], None], [[("b", None)], None]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", None, "c", None], ["c", "d"]),
    ],
    ids=str,
)
def test_values_of_every_type_come_among_those_that_were_there(
    kind: pa.DataType, known: list[object], values: list[object]
) -> None:
    there = pa.array(known, kind)
    came = pa.array(values, ITEMS if pa.types.is_list(kind) else kind)
    found = replaced(there, np.array([False, True, False, True]), came)
    assert found.to_pylist() == [known[0], values[0], known[2], values[1]]
    assert found.type == kind
