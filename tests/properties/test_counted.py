"""Windows of rows and landmarks: over random micro-batches, each result once and when it is decided.

The model knows nothing of stages, ticks or slices: it counts the rows that were not late.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from tests.properties.test_outer import Stamped
from tests.tiers import CUTS, tiers
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import written_manifest
from wjoin.grammar.syntax import Per
from wjoin.joins.delays import output_delay
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.to_come import least_to_come
from wjoin.planner.planning import PlannedSelect

SECOND = 1_000_000
NAMES, KEYS = "ABC", "kj"
Row = tuple[int, int, int, int, bool]
"""The number of a row, its event time in seconds, its two keys, and whether it is a landmark."""

Result = tuple[int, ...]
"""The numbers of the rows of a result."""


@dataclass(frozen=True)
class Counted:
    """``WINDOW stream = rows ROWS [PER KEY | PER HOME]``, or ``WINDOW stream SINCE`` where ``rows`` is 0."""

    stream: int
    rows: int
    per: Per = Per.STREAM

    @property
    def text(self) -> str:
        name = NAMES[self.stream]
        if self.rows == 0:
            return f"WINDOW {name} SINCE ({name}.m)"
        return f"WINDOW {name} = {self.rows} ROWS{self.per.clause}"


@dataclass(frozen=True)
class Alternative:
    """Windows in time to the first stream, by the other ones, None for any time; and windows of rows."""

    near: Sequence[tuple[int, int] | None]
    counted: Sequence[Counted]

    @property
    def text(self) -> str:
        terms = [
            f"WINDOW (A, {name}) BETWEEN {near[0]} SECONDS AND {near[1]} SECONDS"
            for name, near in zip(NAMES[1:], self.near, strict=False)
            if near is not None
        ]
        return " AND ".join([*terms, *(each.text for each in self.counted)])


@dataclass(frozen=True)
class Case:
    """A join of streams with delays, and the rows of its micro-batches; ``settings``: of the session.

    ``links`` are the pairs of streams that are joined, and by which of their keys. ``home``: by which column
    rows live at nodes.
    """

    alternatives: Sequence[Alternative]
    links: Sequence[tuple[int, int, int]]
    delays: Sequence[int]
    batches: Sequence[Sequence[Sequence[Row]]]
    ends: bool
    settings: Mapping[str, str]
    home: str = "j"

    @property
    def planned(self) -> PlannedSelect:
        items = [
            f"{n} WATERMARK ts DELAY OF INTERVAL {d} SECONDS AS {n}"
            for n, d in zip(NAMES, self.delays, strict=False)
        ]
        where = (f"{NAMES[one]}.{KEYS[key]} = {NAMES[other]}.{KEYS[key]}" for one, other, key in self.links)
        return plan_over(
            f"""SELECT {", ".join(f"{n}.n AS {n.lower()}" for n in NAMES[: len(self.delays)])}
                FROM {", ".join(items)} {" OR ".join(f"({each.text})" for each in self.alternatives)}
                WHERE {" AND ".join(where) or "true"}""",
            [stream_of({"n": "bigint", "k": "bigint", "j": "bigint", "m": "boolean"}, home=self.home)]
            * len(self.delays),
            self.settings,
        )

    def key(self, stream: int, row: Row) -> list[int]:
        """Return the values by which a row is joined."""
        return [row[2 + key] for key in {link[2] for link in self.links if stream in link[:2]}]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(2, 3))
    # In one step, in several, in several of which one key is that of two, and without a key.
    trees = [[(0, 1, 0), (0, 2, 0)], [(0, 1, 0), (1, 2, 1)], [(1, 2, 1), (0, 1, 0), (0, 1, 1)], []]
    links = draw(st.sampled_from(trees if count == 3 else [[(0, 1, 0)], []]))
    without_time = draw(st.integers(0, 3)) == 0

    def alternative() -> Alternative:
        near: list[tuple[int, int] | None] = []
        for _ in range(count - 1):
            low = draw(st.integers(-6, 6))
            free = without_time and draw(st.booleans())
            near.append(None if free else (low, low + draw(st.integers(0, 8))))
        per = st.sampled_from([*Per] if links else [Per.STREAM, Per.HOME])
        terms = st.builds(Counted, st.integers(0, count - 1), st.integers(0, 3), per)
        counted = draw(st.lists(terms, max_size=2))
        if None in near:
            counted += [Counted(n, draw(st.integers(0, 3)), draw(per)) for n in range(count)]
        return Alternative(near, counted)

    alternatives = [alternative() for _ in range(draw(st.integers(1, 2)))]
    if not any(each.counted for each in alternatives):
        alternatives[0] = Alternative(alternatives[0].near, [Counted(0, 1)])
    numbers = iter(range(100_000))

    def rows(step: int) -> list[Row]:
        keys = st.integers(0, 1)
        drawn = st.tuples(st.integers(-8, 8), keys, keys, st.booleans())
        return [(next(numbers), 5 * step + time, *rest) for time, *rest in draw(st.lists(drawn, max_size=5))]

    # Routes by slices are for joins without a key.
    plans = ["MULTIWAY", "PSP", "ATR", "CTR"] if not links and not without_time else ["MULTIWAY"]
    return Case(
        alternatives,
        links,
        [draw(st.integers(0, 8)) for _ in range(count)],
        [[rows(step) for _ in range(count)] for step in range(draw(st.integers(1, 7)))],
        draw(st.booleans()),
        {
            "PASSES": draw(st.sampled_from(["HULL", "UNION"])),
            "BOUNDS": draw(st.sampled_from(["EXACT", "LCA", "GCA"][: 1 if without_time else 3])),
            "ALGORITHM": draw(st.sampled_from(["HW", "ADAPTIVE", "MW", "NLW"] if links else ["MW", "NLW"])),
            "PLAN": draw(st.sampled_from(plans)),
        },
    )


@dataclass
class Oracle:
    """What each micro-batch must give, by the definition: rows that are not late, and what is decided."""

    case: Case
    seen: list[int | None] = field(default_factory=list)
    rows: list[list[Row]] = field(default_factory=list)
    given: set[Result] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.seen = [None] * len(self.case.delays)
        self.rows = [[] for _ in self.case.delays]

    def rows_of(self, results: Iterable[Result]) -> Iterator[tuple[Row, ...]]:
        """Yield the rows of results."""
        known = [{row[0]: row for row in rows} for rows in self.rows]
        for each in results:
            yield tuple(own[number] for own, number in zip(known, each, strict=True))

    def mark(self, stream: int) -> float:
        seen = self.seen[stream]
        return float("-inf") if seen is None else seen - self.case.delays[stream]

    def take(self, batch: Sequence[Sequence[Row]], *, ended: bool) -> Counter[Result]:
        marks = [self.mark(each) for each in range(len(batch))]
        for stream, rows in enumerate(batch):
            self.rows[stream].extend(row for row in rows if row[1] >= marks[stream])
            times = [row[1] for row in rows] + ([] if self.seen[stream] is None else [self.seen[stream]])
            self.seen[stream] = max(times, default=None)
        new = {
            tuple(row[0] for row in tuple_) for tuple_ in self._tuples() if self._decided(tuple_, ended=ended)
        } - self.given
        self.given |= new
        return Counter(new)

    def _tuples(self) -> Iterator[tuple[Row, ...]]:
        found: list[tuple[Row, ...]] = [()]
        for stream, rows in enumerate(self.rows):
            own = [link for link in self.case.links if max(link[:2]) == stream]
            found = [
                (*each, row)
                for each in found
                for row in rows
                if all(each[min(one, other)][2 + key] == row[2 + key] for one, other, key in own)
            ]
        yield from found

    def _decided(self, tuple_: tuple[Row, ...], *, ended: bool) -> bool:
        latest = max(row[1] for row in tuple_)
        for each in self.case.alternatives:
            near = all(
                near is None or near[0] <= row[1] - tuple_[0][1] <= near[1]
                for row, near in zip(tuple_[1:], each.near, strict=True)
            )
            if near and all(
                (ended or latest < self.mark(term.stream))
                and self._later(term, tuple_[term.stream], latest) < max(1, term.rows)
                for term in each.counted
            ):
                return True
        return False

    def _later(self, term: Counted, row: Row, latest: int) -> int:
        return sum(
            row[1] < other[1] <= latest
            and (term.rows == 0 or self._alike(term, other, row))
            and (term.rows > 0 or other[4])
            for other in self.rows[term.stream]
        )

    def _alike(self, term: Counted, one: Row, other: Row) -> bool:
        if term.per is Per.HOME:
            return one[3] == other[3]
        return term.per is Per.STREAM or self.case.key(term.stream, one) == self.case.key(term.stream, other)


@dataclass
class Told:
    """What is told of the times of results to come: how far each may be behind, and the least MATCH_TIME.

    ``greatest``: so far, of each stream and of MATCH_START.
    """

    planned: PlannedSelect
    least: int | None = None
    greatest: tuple[int, ...] = ()
    latest: int | None = None

    def check(self, results: Sequence[Sequence[int]]) -> None:
        """Check the event times of the results of a micro-batch, in seconds."""
        behind, all_behind = self.planned.output.match_delay, output_delay(self.planned)
        for times in results:
            assert self.least is None or max(times) * SECOND >= self.least
            assert behind is None or self.latest is None or self.latest - max(times) <= behind // SECOND
            lags = (known - new for known, new in zip(self.greatest, (*times, min(times)), strict=False))
            assert all_behind is None or max(lags, default=0) <= all_behind // SECOND
        for times in results:
            self.latest = max(times) if self.latest is None else max(self.latest, *times)
            every = *times, min(times)
            self.greatest = tuple(map(max, zip(self.greatest or every, every, strict=True)))


def block(plan: PhysicalPlan, stream: int, rows: Sequence[Row]) -> pa.RecordBatch:
    number, time, key, other, mark = (np.array(each) for each in zip(*rows, strict=True))
    return block_of(plan, stream, {"n": number, "ts": time * SECOND, "k": key, "j": other, "m": mark})


def found_in(plan: PhysicalPlan, blocks: Sequence[pa.RecordBatch]) -> Counter[Result]:
    (output,) = plan.outputs
    columns = [stored_column(plan, *each).name for each in output.columns if each[1] == 0]
    found: Counter[Result] = Counter()
    for each in blocks:
        found.update(zip(*(each.column(name).to_pylist() for name in columns), strict=True))
    return found


@pytest.mark.parametrize(("partitions", "stretch"), CUTS)
def test_every_result_comes_once_in_the_micro_batch_that_decides_it(partitions: int, stretch: int) -> None:
    """Also where a micro-batch is joined in many stretches of event time."""

    @given(cases())
    def run(case: Case) -> None:
        planned = case.planned
        plan = planned.physical
        workers, oracle, told = LocalWorkers(plan, partitions, stretch), Oracle(case), Told(planned)
        every = [worker for stage in workers._stages for worker in stage]
        for worker in every:
            worker.store = Stamped()
        for number, batch in enumerate(case.batches):
            ended = case.ends and number == len(case.batches) - 1
            blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
            found = found_in(plan, workers.run(blocks, Counts(), ended=ended))
            assert found == oracle.take(batch, ended=ended)
            told.check([[row[1] for row in each] for each in oracle.rows_of(found)])
            told.least = least_to_come(plan, workers.manifest(-1).seen)
            # As after a restart.
            for worker in every:
                worker.manifest = written_manifest(worker.manifest.encode())

    run()


@pytest.mark.parametrize("per", tiers(Per, long=[Per.KEY, Per.HOME]))
@pytest.mark.parametrize(
    "others",
    [[], pytest.param([Alternative([(-3, 8)], [Counted(0, 2)])], marks=pytest.mark.long)],
    ids=["alone", "either"],
)
def test_rows_that_no_window_in_time_ends_are_kept_until_enough_later_ones_have_come(
    others: list[Alternative], per: Per
) -> None:
    counted = [Counted(0, 3, per), Counted(1, 2, per)]
    plan = Case([Alternative([None], counted), *others], [(0, 1, 0)], [4, 2], [], False, {}).planned.physical
    workers = LocalWorkers(plan, 2)
    for step in range(60):
        rows = [(each, 5 * step + each, each % 2, 0, False) for each in range(5)]
        workers.run({stream: block(plan, stream, rows) for stream in (0, 1)}, Counts())
    # By key each of two has so many, and those of the last micro-batches.
    assert workers.state_rows < 60
    counts = (group for worker in workers._stages[0] for group in worker.manifest.counted)
    assert max(sum(each.rows for each in group) for group in counts) < 60
