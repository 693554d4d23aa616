"""What the tests of other systems ask of outer, semi, anti and ASOF joins, as cases of our own.

Their subjects are those of Flink's interval joins, of ksqlDB's and Kafka Streams' joins with a grace period,
of Spark's joins of two streams, and of DuckDB's and Spark's ASOF joins. The page docs/joins.md says where
wjoin differs, and why.

A case is written as what comes, micro-batch by micro-batch: ``a1@5`` is a row of A at 5 seconds with the key
1, ``b2@7/2/9`` one of B with the key 2 and the value 9. After ``=>`` stands what must come then: ``a1+b1``,
or one row alone. ``| 3`` is the number of rows that are kept after it. ``end`` ends all streams.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.kit.local import LocalWorkers
from tests.kit.planned import plan_over, stream_of
from tests.properties.test_outer import Result, Stamped, block, found_in
from tests.tiers import tiers
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import written_manifest
from wjoin.planner.plan.physical import PhysicalPlan

COLUMNS = stream_of({"n": "bigint", "k": "bigint", "v": "bigint"})

Row = tuple[int, int, int | None, int]
"""The number of a row, its event time in seconds, its key and its value."""

_ROW = re.compile(r"([ab])(\d+)@(-?\d+)(?:/(\d+|null))?(?:/(\d+))?")


@dataclass(frozen=True)
class MicroBatch:
    """What comes, what must come of it, and how many rows are kept then, None where that is not asked."""

    rows: tuple[Sequence[Row], Sequence[Row]]
    results: Counter[Result]
    kept: int | None
    ended: bool


@dataclass(frozen=True)
class Case:
    """A join of A and B: the words between them, what follows ON, and its micro-batches.

    ``window``: how many seconds B may be later than A, at the least and at the most. ``delay``: by how many
    seconds rows of A and of B may be late.
    """

    join: str
    script: str
    window: tuple[int, int] = (-10, 10)
    delay: tuple[int, int] = (0, 0)
    on: str = "A.k = B.k"
    match: str = ""

    @property
    def one_sided(self) -> bool:
        return "SEMI" in self.join or "ANTI" in self.join

    def text(self, first: str, second: str, unit: str = "SECONDS") -> str:
        listed = "A.n AS a" if self.one_sided else "A.n AS a, B.n AS b"
        match = f"MATCH_CONDITION ({self.match})" if self.match else ""
        low, high = self.window
        return f"""SELECT {listed} FROM {first} AS A {self.join} JOIN {second} AS B {match} ON {self.on}
                   WINDOW (A, B) BETWEEN {low} {unit} AND {high} {unit}"""

    @property
    def plan(self) -> PhysicalPlan:
        sides = (f"x WATERMARK ts DELAY OF INTERVAL {each} SECONDS" for each in self.delay)
        return plan_over(self.text(*sides), [COLUMNS, COLUMNS]).physical

    @property
    def micro_batches(self) -> Iterator[MicroBatch]:
        for line in self.script.strip().splitlines():
            come, _, expected = line.partition("=>")
            results, _, kept = expected.partition("|")
            rows: tuple[list[Row], list[Row]] = ([], [])
            for side, number, time, key, value in _ROW.findall(come):
                code = None if key == "null" else int(key or 1)
                rows["ab".index(side)].append((int(number), int(time), code, int(value or 0)))
            assert len(come.split()) - come.split().count("end") == sum(map(len, rows)), line
            ended = "end" in come.split()
            made = Counter(map(_result, results.split()))
            yield MicroBatch(rows, made, int(kept) if kept.strip() else None, ended)


def _result(written: str) -> Result:
    sides = {each[0]: int(each[1:]) for each in written.split("+")}
    return sides.get("a"), sides.get("b")


LATER = (0, 10)
"""B comes at the same time as A or up to ten seconds later."""

OUTER: Mapping[str, Case] = {
    # Flink: rows that end their wait, rows that have met, and both ends of the interval.
    "left: both ends of the interval are inside it": Case(
        "LEFT",
        """a1@10 a2@10/2 a3@10/3 =>
           b1@5 b2@16/2 b3@4/3 => a1+b1 a2+b2
           b4@17/3 => a3""",
        window=(-5, 6),
    ),
    "right: a row of A without a partner is no result": Case(
        "RIGHT",
        """a1@10 b1@12/2 =>
           a2@30 b2@30 => b1 a2+b2
           a3@50 b3@50/3 =>
           a4@90 b4@90/4 => b3""",
    ),
    "full: each side has rows alone": Case(
        "FULL",
        """a1@10 a2@11/2 b1@12 b3@13/3 => a1+b1
           a4@30/4 => b3
           b4@31/5 => a2""",
    ),
    "full: a condition on both sides is tested of pairs": Case(
        "FULL",
        """a1@10/1/3 b1@12/1/4 a2@11/1/9 => a1+b1
           a8@40/8 b8@40/8/1 => a2 a8+b8""",
        on="A.k = B.k AND A.v < B.v",
    ),
    "left: A before B only": Case(
        "LEFT",
        """a1@10 b1@9 =>
           b2@10/2 =>
           b3@20 => a1+b3
           b4@21 =>""",
        window=LATER,
    ),
    "left: A after B only, nothing later is waited for": Case(
        "LEFT",
        """a1@10 b1@9/2 =>
           b2@10/3 =>
           b3@11/3 => a1""",
        window=(-10, 0),
    ),
    "left: an interval of one instant": Case(
        "LEFT",
        """a1@10 a2@11 b1@10 => a1+b1
           b2@12 => a2""",
        window=(0, 0),
    ),
    "left: an interval that has passed before A comes": Case(
        "LEFT",
        """b1@3 b2@100/2 =>
           a1@10 a2@8 b3@100/3 => a1+b1 a2""",
        window=(-7, -6),
    ),
    "left: an interval far in the future": Case(
        "LEFT",
        """a1@0 b1@50 =>
           b2@99 =>
           b3@101 => a1+b3
           a2@5 b4@102/9 =>
           b5@107 => a2""",
        window=(100, 101),
    ),
    # Kafka Streams: duplicates, order, and grace.
    "left: equal rows are different rows, alone": Case(
        "LEFT",
        """a1@0 a2@0 =>
           b9@11/9 => a1 a2
           b8@50/9 =>""",
    ),
    "left: equal rows are different rows, joined": Case(
        "LEFT",
        """a1@0 a2@0 b1@1 b2@1 => a1+b1 a1+b2 a2+b1 a2+b2
           b9@50/9 =>""",
    ),
    "left: no row is given alone first and then joined": Case(
        "LEFT",
        """a1@0 =>
           a2@60/2 =>
           b1@5 => a1+b1
           b9@60/9 =>
           b8@90/9 => a2""",
    ),
    "left: only B's watermark decides, not a newer row of A": Case(
        "LEFT",
        """a1@0 b9@0/9 =>
           a2@1000/2 =>
           a3@2000/3 =>
           b1@11/9 => a1""",
    ),
    "left: a row waits for as long as B may be late": Case(
        "LEFT",
        """a1@0 a2@0/2 =>
           b1@15/9 =>
           b2@10 => a1+b2
           b3@16/9 => a2""",
        delay=(0, 5),
    ),
    "left: the watermark stands exactly at the end of the window": Case(
        "LEFT",
        """a1@0 =>
           b1@10/9 =>
           b2@10 => a1+b2
           b3@11/9 =>""",
    ),
    "left: pairs and rows alone come in one micro-batch": Case(
        "LEFT",
        """a1@0 a2@100/2 =>
           b1@105/2 => a1 a2+b1""",
    ),
    "left: a window to one side waits for its end only": Case(
        "LEFT",
        """a1@0 a2@1/2 =>
           b1@10 => a1+b1
           b2@12/2 => a2""",
        window=LATER,
    ),
    "full: a window to one side has rows alone on both": Case(
        "FULL",
        """b1@3 a1@3/2 =>
           a2@4/3 => b1
           b2@14/4 => a1""",
        window=LATER,
    ),
    "full: many rows of one key in one window": Case(
        "FULL",
        """a1@3 b1@4 => a1+b1
           a2@5 => a2+b1
           b2@6 => a1+b2 a2+b2
           a3@9 => a3+b1 a3+b2
           b3@10 => a1+b3 a2+b3 a3+b3
           a5@40 =>
           b5@60 => a5+b5
           a6@100 b6@100/6 =>""",
        window=(-20, 20),
    ),
    "full: B is ahead, rows of both wait for each other": Case(
        "FULL",
        """b1@100 =>
           a1@5 => a1
           a2@95 => a2+b1
           a3@111/3 =>
           b2@122/4 => a3""",
    ),
    # ksqlDB with GRACE: late rows. There they come alone; here they are dropped.
    "left: a late row of A is dropped and does not come alone": Case(
        "LEFT",
        """a1@0 b1@6 => a1+b1
           a2@33/2 b2@33/3 =>
           a3@9/4 =>
           b3@90/5 => a2""",
    ),
    "left: a late row of B has no partner": Case(
        "LEFT",
        """a1@20 b1@33/2 =>
           b2@20 =>
           b3@41/2 => a1""",
        delay=(0, 10),
    ),
    "left: a row of B inside its delay has a partner": Case(
        "LEFT",
        """a1@20 b1@33/2 =>
           b2@23 => a1+b2
           b3@45/2 =>""",
        delay=(0, 10),
    ),
    "right: a late row of B is dropped, a late row of A meets nobody": Case(
        "RIGHT",
        """a1@0 b1@6 => a1+b1
           a2@33/2 b2@33/3 =>
           b3@9/4 =>
           a3@30/3 =>
           a4@90/5 => b2""",
    ),
    "full: late rows of both sides are dropped": Case(
        "FULL",
        """a1@50 b1@50/2 =>
           a2@10/3 b2@10/3 =>
           a3@61/4 b3@61/5 => a1 b1
           a4@72/6 b4@72/7 => a3 b3""",
    ),
    "left: late and on time in one micro-batch is judged by the one before": Case(
        "LEFT",
        """a1@100 b1@15/3 =>
           a2@200 a3@99 a4@100/2 b2@90 => a1+b2
           b3@300/3 => a2 a4""",
    ),
    # Spark: state, self-made rows, and rows that come and go in one micro-batch.
    "left: rows that have met are kept, and do not come again": Case(
        "LEFT",
        """a1@0 a2@1/2 b1@1 => a1+b1 | 3
           b2@9 => a1+b2 | 4
           a3@30/3 b3@30/3 => a2 a3+b3 | 2""",
    ),
    "left: a partner has left the state before the row does": Case(
        "LEFT",
        """a1@10 b1@10 => a1+b1
           a2@11/2 =>
           a3@25/3 =>
           b2@22/4 => a2
           b3@50/4 => a3""",
        window=LATER,
    ),
    "left: one row leaves and another of its key comes, in one micro-batch": Case(
        "LEFT",
        """a1@0 b1@20 => a1+b1
           a2@3600 =>
           a3@5400 b2@5410 => a2 a3+b2""",
        window=(-30, 30),
    ),
    "left: partners are found although others of the key leave": Case(
        "LEFT",
        """a1@0 a2@86400 a3@90000 b1@86410 b2@89999 b3@93600 => a1 a2+b1 a3+b2""",
        window=(-30, 30),
    ),
    "left: two delays, each side by its own": Case(
        "LEFT",
        """a1@1000 b1@1000/2 =>
           a2@885/3 =>
           b2@765 =>
           b3@1251/2 => a1 a2""",
        delay=(120, 240),
    ),
    "full: nothing is kept once both sides are far ahead": Case(
        "FULL",
        """a1@1 a2@2/2 b1@3 b2@4/4 => a1+b1 | 4
           a3@40/5 b3@40/6 => a2 b2 | 2
           a4@80/5 b4@80/6 => a3 b3 | 2""",
    ),
    "right: the mirror image of left": Case(
        "RIGHT",
        """b1@10 b2@10/2 b3@10/3 =>
           a1@5 a2@16/2 a3@4/3 => a1+b1 a2+b2
           a4@17/3 => b3""",
        window=(-6, 5),
    ),
    # What ends, and what does not come.
    "left: B never sends a row": Case(
        "LEFT",
        """a1@0 =>
           a2@1000/2 =>
           a3@2000/3 => | 3""",
    ),
    "left: the streams end": Case(
        "LEFT",
        """a1@0 b1@0/2 =>
           end => a1""",
    ),
    "full: the streams end": Case(
        "FULL",
        """a1@0 b1@0/2 a3@0/3 b3@0/3 => a3+b3
           end => a1 b1""",
    ),
    "left: a row of B that comes after the end is late": Case(
        "LEFT",
        """a1@0 b1@0/2 =>
           end => a1
           b2@5 =>
           a2@12 b3@12 => a2+b3""",
    ),
    "left: micro-batches without rows change nothing": Case(
        "LEFT",
        """=>
           a1@0 =>
           =>
           b1@11/2 => a1
           =>""",
    ),
    "left: one micro-batch decides by its own watermark": Case(
        "LEFT",
        """a1@0 b1@500/2 => a1""",
    ),
    "full: reversed order of the rows changes nothing": Case(
        "FULL",
        """b4@40/4 b3@21 b1@3 a9@40/9 a2@20/2 a1@1 => a1+b1 a2 b3""",
    ),
    "left: times before 1970": Case(
        "LEFT",
        """a1@-100 b1@-95 a2@-100/2 => a1+b1
           b2@-89/9 => a2""",
    ),
}

SEMI_AND_ANTI: Mapping[str, Case] = {
    "semi: a row comes with its first partner, once": Case(
        "SEMI",
        """a1@5 a3@5/3 =>
           b1@10 b2@5/2 => a1
           b3@9 =>
           a2@7 a4@30 => a2
           b4@30/9 =>""",
    ),
    "semi: a row with several partners in one micro-batch comes once": Case(
        "SEMI",
        """a1@5 b1@5 b2@6 b3@7 => a1
           b4@8 =>""",
    ),
    "semi: equal rows come each": Case(
        "SEMI",
        """a1@5 a2@5 =>
           b1@6 => a1 a2""",
    ),
    "semi: a late row of A does not come": Case(
        "SEMI",
        """a1@50 b1@50 => a1
           a2@40 =>
           a3@55 => a3""",
    ),
    "semi: nothing comes when the watermark passes": Case(
        "SEMI",
        """a1@1 a2@2/2 b1@1 => a1
           a3@30/3 b3@31/4 => | 2""",
    ),
    "anti: a row comes once no partner can": Case(
        "ANTI",
        """a1@0 a2@0/2 =>
           b1@10/2 =>
           b2@11/9 => a1""",
    ),
    "anti: several partners keep a row out once and for all": Case(
        "ANTI",
        """a1@0 b1@1 b2@2 =>
           b3@3 =>
           b4@100/2 =>""",
    ),
    "anti: equal rows come each": Case(
        "ANTI",
        """a1@0 a2@0 =>
           b1@11/9 => a1 a2""",
    ),
    "anti: a late row does not come": Case(
        "ANTI",
        """a1@50 b1@50/2 =>
           a2@20/3 =>
           b2@61/2 => a1""",
    ),
    "anti: the streams end": Case(
        "ANTI",
        """a1@0 a2@0/2 b1@0/2 =>
           end => a1""",
    ),
}

LAST, FIRST = "A.ts >= B.ts", "A.ts <= B.ts"

ASOF: Mapping[str, Case] = {
    "asof: the last one at or before": Case(
        "LEFT ASOF",
        """b1@1 b2@5 b3@6 a1@5 => a1+b2""",
        match=LAST,
    ),
    "asof: strictly before": Case(
        "LEFT ASOF",
        """b1@1 b2@5 b3@6 a1@5 => a1+b1""",
        match="A.ts > B.ts",
    ),
    "asof: the first one at or after": Case(
        "LEFT ASOF",
        """b1@1 b2@5 b3@6 a1@5 =>
           b9@16/9 => a1+b2""",
        match=FIRST,
    ),
    "asof: strictly after": Case(
        "LEFT ASOF",
        """b1@1 b2@5 b3@6 a1@5 =>
           b9@16/9 => a1+b3""",
        match="A.ts < B.ts",
    ),
    "asof: written the other way round": Case(
        "LEFT ASOF",
        """b1@1 b2@5 b3@6 a1@5 => a1+b2""",
        match="B.ts <= A.ts",
    ),
    "asof: of two as near, the earlier one": Case(
        "LEFT ASOF",
        """b1@3 b2@7 a1@5 =>
           b9@16/9 => a1+b1""",
        match="NEAREST",
    ),
    "asof: nothing before the first row": Case(
        "LEFT ASOF",
        """b1@5 a1@4 a2@5 => a1
           b9@6/9 => a2+b1""",
        match=LAST,
    ),
    "asof: an inner join leaves rows without one out": Case(
        "ASOF",
        """b1@5 a1@4 a2@5 =>
           b9@6/9 => a2+b1""",
        match=LAST,
    ),
    "asof: each key by itself": Case(
        "LEFT ASOF",
        """b1@1 b2@2/2 a1@3 a2@3/2 a3@3/3 =>
           b9@4/9 => a1+b1 a2+b2 a3""",
        match=LAST,
    ),
    "asof: of one instant the least by its columns, in every order": Case(
        "LEFT ASOF",
        """b4@5/1/7 b3@5/1/2 b5@5/1/9 a1@6 b9@7/9 => a1+b3""",
        match=LAST,
    ),
    "asof: of one instant the least, also where it comes later": Case(
        "LEFT ASOF",
        """b4@5/1/7 a1@6 =>
           b3@5/1/2 =>
           b9@7/9 => a1+b3""",
        match=LAST,
    ),
    "asof: a condition picks among the rows, not after it": Case(
        "LEFT ASOF",
        """b1@1/1/9 b2@4/1/1 a1@5/1/5 a2@5/1/99 b9@6/9 => a1+b1 a2""",
        on="A.k = B.k AND B.v > A.v",
        match=LAST,
    ),
    "asof: the tolerance ends the search": Case(
        "LEFT ASOF",
        """b1@0 a1@10 a2@11 b9@12/9 => a1+b1 a2""",
        match=LAST,
    ),
    "asof: a row waits for nearer ones that may be late": Case(
        "LEFT ASOF",
        """b1@1 a1@5 =>
           b9@7/9 =>
           b2@4 =>
           b8@9/9 => a1+b2""",
        match=LAST,
        delay=(0, 3),
    ),
    "asof: later rows do not change what was taken": Case(
        "LEFT ASOF",
        """b1@1 a1@5 b9@6/9 => a1+b1
           b2@5 =>
           a2@7 b8@8/9 => a2+b1""",
        match=LAST,
    ),
    "asof: many rows of A take the same row": Case(
        "LEFT ASOF",
        """b1@1 a1@2 a2@2 a3@3 b9@4/9 => a1+b1 a2+b1 a3+b1""",
        match=LAST,
    ),
    "asof: A has no row of the key of B": Case(
        "LEFT ASOF",
        """b1@1 b2@2 b9@20/9 =>
           a1@20/2 b8@21/9 => a1""",
        match=LAST,
    ),
    "asof: B has no row at all before": Case(
        "LEFT ASOF",
        """a1@5 =>
           b1@6 => a1""",
        match=LAST,
    ),
    "asof: a late row of A is dropped": Case(
        "LEFT ASOF",
        """a1@50 b1@50 =>
           a2@45 =>
           b2@51 => a1+b1""",
        match=LAST,
    ),
    "asof: rows leave once nothing waits for them": Case(
        "LEFT ASOF",
        """b1@1 b2@2 a1@3 => | 3
           b3@4 a2@4 => a1+b2 | 4
           b4@40 a3@40 => a2+b3 | 2""",
        match=LAST,
    ),
}


ALL = {**OUTER, **SEMI_AND_ANTI, **ASOF}


def assert_comes(case: Case, partitions: int) -> None:
    """Run the micro-batches one by one, with a restart after each, and compare what comes of each."""
    plan = case.plan
    workers = LocalWorkers(plan, partitions)
    for worker in workers._stages[0]:
        worker.store = Stamped()
    for number, each in enumerate(case.micro_batches, start=1):
        blocks = {side: block(plan, side, rows) for side, rows in enumerate(each.rows) if rows}
        found = found_in(plan, workers.run(blocks, Counts(), ended=each.ended))
        assert found == each.results, f"micro-batch {number}"
        if each.kept is not None:
            assert workers.state_rows == each.kept, f"micro-batch {number}"
        for worker in workers._stages[0]:
            worker.manifest = written_manifest(worker.manifest.encode())


QUICK = [next(iter(kind)) for kind in (OUTER, SEMI_AND_ANTI, ASOF)]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", tiers(ALL, long=[name for name in ALL if name not in QUICK]))
def test_what_comes_and_when(name: str, partitions: int) -> None:
    """Without Spark: the executor works off the micro-batches."""
    assert_comes(ALL[name], partitions)


def _on_time(case: Case) -> bool:
    """Return whether no row is late, so that the result does not depend on the cut."""
    seen: list[int | None] = [None, None]
    for each in case.micro_batches:
        for side, rows in enumerate(each.rows):
            newest, times = seen[side], [row[1] for row in rows]
            if newest is not None and any(time < newest - case.delay[side] for time in times):
                return False
            seen[side] = max([*times, *([] if newest is None else [newest])], default=None)
        if each.ended:
            return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, case in ALL.items() if _on_time(case)])
def test_the_cut_does_not_matter(name: str) -> None:
    """All in one micro-batch that ends the streams, or row by row: what comes in the end is the same."""
    case = ALL[name]
    rows = [row for each in case.micro_batches for row in _in_turn(each.rows)]
    at_once = [[row for at, row in rows if at == side] for side in (0, 1)]
    one_by_one = [[[row] if at == side else [] for side in (0, 1)] for at, row in rows]
    whole = _ran(case, [at_once])
    assert _ran(case, [*one_by_one, ([], [])]) == whole
    told = sum((each.results for each in case.micro_batches), Counter[Result]())
    assert told <= whole


def _in_turn(rows: tuple[Sequence[Row], Sequence[Row]]) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a micro-batch in the order of their times: none is late however they are cut."""
    both = [(side, row) for side in (0, 1) for row in rows[side]]
    return iter(sorted(both, key=lambda each: each[1][1]))


def _ran(case: Case, batches: Sequence[Sequence[Sequence[Row]]]) -> Counter[Result]:
    """Return all that comes of some micro-batches, of which the last one ends the streams."""
    plan, found = case.plan, Counter[Result]()
    workers = LocalWorkers(plan)
    for number, sides in enumerate(batches, start=1):
        blocks = {side: block(plan, side, rows) for side, rows in enumerate(sides) if rows}
        found += found_in(plan, workers.run(blocks, Counts(), ended=number == len(batches)))
    return found


ON_SPARK: Mapping[str, Case] = {
    "left: rows with NULL for the key come at once, alone": Case(
        "LEFT",
        """a1@0/null a2@0 b1@0/null => a1
           b2@11 => a2""",
    ),
    "right: rows with NULL for the key come at once, alone": Case(
        "RIGHT",
        """a1@0/null b1@0/null b2@0 => b1
           a2@11 => b2""",
    ),
    "full: NULL meets nothing, not NULL either": Case(
        "FULL",
        """a1@0/null a2@1 b1@0/null b2@1 => a1 b1 a2+b2
           a3@2/null b3@2/null => a3 b3""",
    ),
    "full: a late row with NULL for the key is dropped": Case(
        "FULL",
        """a1@50 b1@50 => a1+b1
           a2@10/null b2@60/null => b2
           a3@50/null b3@10/null => a3""",
    ),
    "semi: NULL has no partner": Case("SEMI", "a1@0/null b1@0/null a2@0 b2@1 => a2"),
    "anti: a row with NULL for the key comes at once": Case(
        "ANTI",
        """a1@0/null a2@0 b1@0/null =>  a1
           b2@11/2 => a2""",
    ),
    "asof: a row with NULL for the key comes alone": Case(
        "LEFT ASOF",
        """b1@1/null b2@1 a1@5/null a2@5 => a1
           b3@6/9 => a2+b2""",
        match=LAST,
    ),
    "asof: an inner join drops rows with NULL for the key": Case(
        "ASOF",
        """b1@1/null b2@1 a1@5/null a2@5 =>
           b3@6/9 => a2+b2""",
        match=LAST,
    ),
    "left: a condition on A keeps no row out": Case(
        "LEFT",
        """a1@10 a2@10/1/5 b1@12 => a2 a1+b1
           b9@30 =>""",
        on="A.k = B.k AND A.v <> 5",
    ),
    "left: a condition on B leaves rows of A alone": Case(
        "LEFT",
        """a1@10 b1@12/1/5 =>
           b9@30/1/5 => a1""",
        on="A.k = B.k AND B.v <> 5",
    ),
    "right: a condition on B keeps no row out": Case(
        "RIGHT",
        """a1@10 b1@12 b2@12/1/5 => b2 a1+b1
           a9@30 =>""",
        on="A.k = B.k AND B.v <> 5",
    ),
    "full: conditions on both sides keep no row out": Case(
        "FULL",
        """a1@10/1/5 a2@11 b1@10/1/5 b2@11/1/6 => a1 b1 a2+b2""",
        on="A.k = B.k AND A.v <> 5 AND B.v <> 5",
    ),
    "semi: a condition on B picks the partners": Case(
        "SEMI",
        """a1@5 b1@5/1/7 =>
           b2@6/1/8 => a1
           b3@60/1/8 =>""",
        on="A.k = B.k AND B.v > 7",
    ),
    "anti: a condition on B lets rows of A through": Case(
        "ANTI",
        """a1@0 b1@1/1/5 =>
           b2@11/9 => a1""",
        on="A.k = B.k AND B.v <> 5",
    ),
    "anti: a condition on A lets the others through at once": Case(
        "ANTI",
        """a1@0 a2@0/1/5 => a2
           b2@11/9 => a1""",
        on="A.k = B.k AND A.v <> 5",
    ),
    **{
        name: ALL[name]
        for name in (
            "left: both ends of the interval are inside it",
            "left: equal rows are different rows, alone",
            "left: no row is given alone first and then joined",
            "left: a late row of A is dropped and does not come alone",
            "left: micro-batches without rows change nothing",
            "full: late rows of both sides are dropped",
            "semi: a row comes with its first partner, once",
            "anti: a row comes once no partner can",
            "asof: of one instant the least by its columns, in every order",
        )
    },
}
"""Cases of which NULL and conditions on one side are the subject, and one of each kind of the others."""


def _streams(session: wjoin.Session, case: Case, root: Path) -> None:
    """Declare the streams, and write a file of each for each micro-batch, also where it has no row."""
    for side, name in enumerate("ab"):
        folder = root / name
        folder.mkdir()
        for number, each in enumerate(case.micro_batches):
            columns = [*zip(*each.rows[side], strict=True)] or [()] * 4
            types = dict.fromkeys(("n", "ts", "k", "v"), pa.int64())
            file = folder / f"{number}.parquet"
            pq.write_table(
                pa.table([pa.array(values, pa.int64()) for values in columns], schema=pa.schema(types)), file
            )
            # Spark reads files in the order of their times.
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} (n BIGINT, ts BIGINT, k BIGINT, v BIGINT,
                                                 WATERMARK FOR ts AS ts - {case.delay[side]})
                USING parquet OPTIONS (path '{folder}', maxFilesPerTrigger '1')"""
        )
    session.sql(f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{root / 'found'}')")


def _committed(root: Path) -> list[Counter[Result]]:
    """Return what each micro-batch has added to the sink, by Spark's log of it."""
    found = []
    logs = [file for file in (root / "found" / "_spark_metadata").iterdir() if file.name.isdigit()]
    for log in sorted(logs, key=lambda each: int(each.name)):
        added = [json.loads(line) for line in log.read_text("utf-8").splitlines()[1:]]
        tables = [pq.read_table(root / "found" / Path(each["path"]).name) for each in added]
        rows = [row for table in tables for row in table.to_pylist()]
        found.append(Counter((row["a"], row.get("b")) for row in rows))
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", ON_SPARK)
def test_what_comes_and_when_on_spark(session: wjoin.Session, tmp_path: Path, name: str) -> None:
    case = ON_SPARK[name]
    _streams(session, case, tmp_path)
    insert = f"INSERT INTO found {case.text('a', 'b', '')}"
    session.run_script(insert, once=True, checkpoint=str(tmp_path / "checkpoints"))
    assert _committed(tmp_path) == [each.results for each in case.micro_batches]


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, case in ON_SPARK.items() if _on_time(case)])
def test_tables_have_the_same_rows(session: wjoin.Session, tmp_path: Path, name: str) -> None:
    """Over the rows as tables everything is decided: what comes of the streams is a part of it."""
    case = ON_SPARK[name]
    _streams(session, case, tmp_path)
    for side in "ab":
        session.spark.read.parquet(str(tmp_path / side)).createOrReplaceTempView(f"rows_{side}")
    text = case.text("rows_a WATERMARK ts DELAY OF 0", "rows_b WATERMARK ts DELAY OF 0", "")
    found = Counter((row["a"], None if case.one_sided else row["b"]) for row in session.sql(text).collect())
    assert sum((each.results for each in case.micro_batches), Counter[Result]()) <= found
    preserved = {"LEFT": "a", "RIGHT": "b", "FULL": "ab"}.get(case.join.split()[0], "")
    for place, side in enumerate("ab"):
        rows = {row[0] for each in case.micro_batches for row in each.rows[place]}
        met = {result[place] for result in found} - {None}
        assert met == rows if side in preserved else met <= rows
