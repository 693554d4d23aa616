"""Trees of joins: over random micro-batches, each result once and in the micro-batch that decides it.

The model knows nothing of stages: it makes the results of the joins from all rows that were not late, and
for each row without a partner the time that a watermark must pass.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from tests.properties.test_outer import KERNELS, KEYED, Stamped, in_slices, on_of
from tests.tiers import CUTS
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import written_manifest
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.block_columns import code_name, stored_column
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.to_come import least_to_come
from wjoin.planner.planning import PlannedSelect
from wjoin.udfs.predicate import Predicate

SECOND = 1_000_000
NAMES = "ABCDE"
Row = tuple[int, int, int, int]
"""The number of a row, its event time in seconds, its key and its value."""

NEVER = "(false)"
"""How the column is named that tells that no tuple meets at a later join."""

ABSENT = {"v >= 1)": None, "v IS NULL)": True, "k, 0)": 0}
"""How the columns are named that hold expressions, and what these are over NULLs."""

Tuple = Mapping[int, Row]
"""The rows of a result by their streams, nothing of one that has none."""


@dataclass(frozen=True)
class Term:
    """What ON says of a stream before and one that is joined: a window, and that their keys are equal."""

    other: int
    low: int
    high: int
    compared: bool
    equal: bool = True
    open: bool = False
    """Whether it has no window where there are others."""
    own: int | None = None
    """The stream that is joined, None for the first one of the right side."""


@dataclass(frozen=True)
class Said:
    """A condition of ON: how it is written of streams and one that is joined, and what it means.

    ``before``: whether it is on streams of one side alone. What is missing is None. ``own``: as in a term.
    """

    streams: Sequence[int]
    written: str
    holds: Callable[..., bool]
    before: bool
    own: int | None = None

    @property
    def called(self) -> bool:
        """Whether it is a predicate, for which the rows must be there and meet others."""
        return self.written.startswith("smaller")

    def text(self, number: int) -> str:
        own = number if self.own is None else self.own
        return self.written.format(*(NAMES[each] for each in self.streams), own=NAMES[own])

    def is_true(self, rows: Tuple, number: int) -> bool:
        first = [rows.get(each) for each in self.streams]
        if self.before:
            return self.holds(*first)
        own = rows.get(number if self.own is None else self.own)
        # Only what asks nothing of the row is true without it.
        return (
            self.holds(*first, own)
            if own is not None
            else self.written[1:].startswith("{0}.ts IS NULL") and not first[0]
        )


ALONE = (
    ("{0}.v >= 1", lambda first: first is not None and first[3] >= 1),
    ("{0}.v IS NULL", lambda first: first is None),
)
PAIRS = (
    ("{0}.v < {1}.v", lambda first, second: bool(first and second and first[3] < second[3])),
    ("{0}.k = {1}.k", lambda first, second: bool(first and second and first[2] == second[2])),
    (
        "({0}.v IS NULL OR coalesce({1}.v, 1) <= {0}.v)",
        lambda first, second: first is None or (second[3] if second else 1) <= first[3],
    ),
    ("{0}.ts <= coalesce({1}.ts, {0}.ts)", lambda a, b: a is not None and (b is None or a[1] <= b[1])),
    ("smaller({0}.v, {1}.v)", lambda first, second: bool(first and second and first[3] < second[3])),
)
JOINED = (
    ("coalesce({0}.k, 0) = {own}.k", lambda first, row: (first[2] if first else 0) == row[2]),
    ("coalesce({0}.v, 1) <= {own}.v", lambda first, row: (first[3] if first else 1) <= row[3]),
    ("coalesce({0}.ts, {own}.ts) <= {own}.ts", lambda first, row: first is None or first[1] <= row[1]),
    ("({0}.ts IS NULL OR {0}.v < {own}.v)", lambda first, row: first is None or first[3] < row[3]),
    ("smaller({0}.v, {own}.v)", lambda first, row: first is not None and first[3] < row[3]),
)
PREDICATES = {"smaller": Predicate("smaller", lambda first, second: first < second)}

"""What ON may say of one stream before, of two, and of one and the stream that is joined."""


@dataclass(frozen=True)
class Bound:
    """A window between two streams."""

    first: int
    second: int
    low: int
    high: int

    @property
    def text(self) -> str:
        pair = f"({NAMES[self.first]}, {NAMES[self.second]})"
        return f"WINDOW {pair} BETWEEN {self.low} SECONDS AND {self.high} SECONDS"

    def holds(self, rows: Tuple) -> bool:
        first, second = rows.get(self.first), rows.get(self.second)
        return first is not None and second is not None and self.low <= second[1] - first[1] <= self.high


@dataclass(frozen=True)
class Counted:
    """``WINDOW stream = rows ROWS [PER KEY]``."""

    stream: int
    rows: int
    per_key: bool

    @property
    def text(self) -> str:
        return f"WINDOW {NAMES[self.stream]} = {self.rows} ROWS{' PER KEY' if self.per_key else ''}"


@dataclass(frozen=True)
class Step:
    """A join with one more stream, or with what the joins ``right`` after that make."""

    kind: JoinKind
    terms: Sequence[Term]
    said: Sequence[Said] = ()
    match: str = ""
    """How the time of the stream of the first term and its own compare, of an ASOF JOIN."""
    choice: Sequence[Sequence[Bound | Counted]] = ()
    """Windows joined by OR: alternatives, each of windows joined by AND."""
    enclosed: bool = False
    """Whether what is before it is in parentheses."""
    right: Sequence["Step"] = ()

    @property
    def counted(self) -> list[Counted]:
        """The windows of rows of its choice."""
        return [each for one in self.choice for each in one if isinstance(each, Counted)]

    @property
    def named(self) -> set[int]:
        """The streams of its choice."""
        found = {each.stream for each in self.counted}
        bounds = (each for one in self.choice for each in one if isinstance(each, Bound))
        return found.union(*((each.first, each.second) for each in bounds))

    @property
    def size(self) -> int:
        """How many streams it joins."""
        return 1 + sum(each.size for each in self.right)

    @property
    def plain(self) -> bool:
        """Whether all that it joins are inner joins, without a choice of windows."""
        return all(each.kind is JoinKind.INNER and not each.choice and each.plain for each in self.right)

    def near(self, time: int, own: int) -> tuple[int, int]:
        """Return by what a row is nearer than others: how far it is, and when."""
        return abs(time - own), own

    def compares(self, time: int, own: int) -> bool:
        signs = {">=": time >= own, ">": time > own, "<=": time <= own, "<": time < own}
        return signs.get(self.match, True)


@dataclass(frozen=True)
class Case:
    """Joins, one after the other, with windows of rows, and the rows of the streams' micro-batches.

    ``length``: the seconds of the slices in which rows that wait at joins without a key lie, None for none.
    """

    steps: Sequence[Step]
    delays: Sequence[int]
    batches: Sequence[Sequence[Sequence[Row]]]
    complete: bool
    length: int | None = None
    counted: Sequence[Counted] = ()
    kernels: Sequence[str] = ()
    """With which each micro-batch is joined, as after a restart."""
    more: Sequence[Sequence[Sequence[Row]]] = ()
    """The micro-batches after the one with which all streams end, where there is one."""
    idle: Sequence[int | None] = ()
    """After how many micro-batches without a row each stream is silent."""

    @property
    def numbered(self) -> list[tuple[int, Step]]:
        """All joins, each with its first stream."""
        return list(_numbered(self.steps, 1))

    @property
    def every_count(self) -> list[Counted]:
        """All windows of rows."""
        return [*self.counted, *(each for _, step in self.numbered for each in step.counted)]

    @property
    def hidden(self) -> set[int]:
        joins = (range(number, number + step.size) for number, step in self.numbered if step.kind.one_sided)
        return {stream for streams in joins for stream in streams}

    @property
    def text(self) -> str:
        shown = [n for n in range(len(self.delays)) if n not in self.hidden]
        listed = ", ".join(f"{NAMES[n]}.n AS {NAMES[n].lower()}" for n in shown)
        windows = [window for number, step in self.numbered for window in self._windows(number, step)]
        windows += [each.text for each in self.counted]
        return f"SELECT {listed} FROM {self._joins(0, self.steps)} {' AND '.join(windows)}"

    def _joins(self, first: int, steps: Sequence[Step]) -> str:
        name = NAMES[first]
        text = f"{name} WATERMARK ts DELAY OF INTERVAL {self.delays[first]} SECONDS AS {name}"
        number = first + 1
        for step in steps:
            pairs = [
                (NAMES[each.other], NAMES[number if each.own is None else each.own], each)
                for each in step.terms
            ]
            on = [f"{other}.k = {own}.k" for other, own, each in pairs if each.equal]
            on += [f"{other}.v <= {own}.v" for other, own, each in pairs if each.compared]
            on += [each.text(number) for each in step.said]
            kind = step.kind.value.removesuffix(" OUTER")
            compared = f"{pairs[0][0]}.ts {step.match} {pairs[0][1]}.ts"
            match = (
                f" MATCH_CONDITION ({'NEAREST' if step.match == 'NEAREST' else compared})"
                if step.match
                else ""
            )
            right = self._joins(number, step.right)
            right = f"({right})" if step.right else right
            text = f"{f'({text})' if step.enclosed else text} {kind} JOIN {right}{match} {on_of(*on)}"
            number += step.size
        return text

    def _windows(self, number: int, step: Step) -> Iterator[str]:
        for each in step.terms:
            if not (step.choice and each.open):
                yield Bound(each.other, number if each.own is None else each.own, each.low, each.high).text
        if step.choice:
            alternatives = [" AND ".join(bound.text for bound in each) for each in step.choice]
            yield f"({' OR '.join(f'({each})' for each in alternatives)})"

    def planned(self, kernel: str = "HW", *, streaming: bool = True) -> PlannedSelect:
        stream = replace(stream_of({"n": "bigint", "k": "bigint", "v": "bigint"}), streaming=streaming)
        keyed = all(any(term.equal for term in step.terms) for _, step in self.numbered)
        wished = {"ALGORITHM": kernel} if keyed or kernel not in KEYED else {}
        return plan_over(self.text, [stream] * len(self.delays), wished, predicates=PREDICATES)

    def plan(self, kernel: str = "HW") -> PhysicalPlan:
        plan = in_slices(self.planned(kernel).physical, self.length)
        limits = [None if each is None else each * SECOND for each in self.idle or [None] * len(self.delays)]
        pairs = zip(plan.streams, limits, strict=True)
        return replace(plan, streams=tuple(replace(each, idle_after=limit) for each, limit in pairs))


def _numbered(steps: Sequence[Step], number: int) -> Iterator[tuple[int, Step]]:
    for step in steps:
        yield from _numbered(step.right, number + 1)
        yield number, step
        number += step.size


@st.composite
def conditions(draw: st.DrawFn, left: Sequence[int], right: Sequence[int]) -> Said:
    visible = draw(st.sampled_from([left, right])) if len(right) > 1 else left
    kind = draw(st.sampled_from((ALONE, JOINED, PAIRS) if len(visible) > 1 else (ALONE, JOINED)))
    count = 2 if kind is PAIRS else 1
    visible = left if kind is JOINED else visible
    streams = draw(st.lists(st.sampled_from(visible), min_size=count, max_size=count, unique=True))
    own = draw(st.sampled_from(right))
    return Said(streams, *draw(st.sampled_from(kind)), kind is not JOINED, own)


@st.composite
def choices(
    draw: st.DrawFn, left: Sequence[int], right: Sequence[int], *, rows: bool = False
) -> Sequence[Sequence[Bound | Counted]]:
    """Return alternatives of a join, each with a window of its sides and perhaps ones of others, or rows."""
    alternatives = []
    for _ in range(draw(st.integers(2, 3))):
        low = draw(st.sampled_from([-6, -2, 0, 4]))
        first, own = draw(st.sampled_from(left)), draw(st.sampled_from(right))
        bounds: list[Bound | Counted] = [Bound(first, own, low, low + draw(st.integers(-1, 6)))]
        if len(left) > 1 and draw(st.booleans()):
            first, second = draw(st.permutations(left))[:2]
            bounds.append(Bound(first, second, draw(st.integers(-4, 0)), draw(st.integers(0, 4))))
        if rows:
            counted = st.builds(Counted, st.sampled_from([*left, *right]), st.integers(1, 3), st.booleans())
            bounds += draw(st.lists(counted, max_size=2))
        alternatives.append(bounds)
    return alternatives


@st.composite
def joins(
    draw: st.DrawFn, first: int, count: int, *, nested: bool, rows: bool = False
) -> tuple[list[Step], list[int]]:
    """Return the joins of streams from a number on, so many, and those of which there are columns."""
    steps: list[Step] = []
    visible, number = [first], first + 1
    while number < first + count:
        left = first + count - number
        size = draw(st.integers(1, left)) if nested else 1
        inside, right = draw(joins(number, size, nested=nested, rows=rows))
        others = draw(st.lists(st.sampled_from(visible), min_size=1, max_size=2, unique=True))
        low = draw(st.sampled_from([-12, -4, -2, 0, 1, 5, 10]))
        said = [draw(conditions(visible, right)) for _ in range(draw(st.integers(0, 2)))]
        wide = st.sampled_from([0, 1, 2, 3, 4, 5, 6, -3])
        opened = draw(st.booleans())
        terms = [
            Term(
                each,
                low,
                low + draw(wide),
                draw(st.booleans()),
                draw(st.booleans()),
                opened,
                draw(st.sampled_from(right)),
            )
            for each in others
        ]
        kind = draw(st.sampled_from(list(JoinKind)))
        # Of several streams it is not said which one NEAREST goes by.
        rules = [">=", ">", "<=", "<", *(["NEAREST"] if len(terms) == 1 else [])]
        match = draw(st.sampled_from(rules)) if kind.asof else ""
        choice = (
            draw(choices(visible, right, rows=rows)) if match != "NEAREST" and draw(st.booleans()) else ()
        )
        steps.append(Step(kind, terms, said, match, choice, draw(st.booleans()), inside))
        if not kind.one_sided:
            visible += right
        number += size
    return steps, visible


@st.composite
def cases(draw: st.DrawFn, *, rows_counted: bool = False, rows_chosen: bool = False) -> Case:
    count = draw(st.integers(2, 4 if rows_counted else 5))
    steps, _ = draw(joins(0, count, nested=not rows_counted, rows=rows_chosen))
    numbers = iter(range(100_000))

    # Some streams come later than others.
    behind = draw(st.lists(st.sampled_from([0, 0, 0, 8, 20]), min_size=count, max_size=count))

    def rows(step: int, stream: int) -> list[Row]:
        found = draw(
            st.lists(st.tuples(st.integers(-7, 7), st.integers(0, 1), st.integers(0, 2)), max_size=4)
        )
        at = 5 * step - behind[stream]
        return [(next(numbers), at + time, key, value) for time, key, value in found]

    terms = st.builds(Counted, st.integers(0, count - 1), st.integers(1, 3), st.booleans())
    counted = draw(st.lists(terms, min_size=0 if rows_chosen else 1, max_size=2)) if rows_counted else []
    holds = bool(counted) or rows_chosen
    batches = draw(st.integers(1, 7))
    silences = st.just([]) | st.lists(st.none() | st.integers(1, 3), min_size=count, max_size=count)
    return Case(
        steps,
        [draw(st.integers(0, 6)) for _ in range(count)],
        [[rows(step, stream) for stream in range(count)] for step in range(batches)],
        draw(st.booleans()),
        draw(st.none() | st.sampled_from([1, 3, 10])),
        counted,
        draw(st.lists(st.sampled_from(KERNELS[:-1]), min_size=batches + 1, max_size=batches + 1)),
        [
            [rows(7, stream) for stream in range(count)]
            for _ in range(0 if holds else draw(st.integers(0, 2)))
        ],
        [] if holds else draw(silences),
    )


@dataclass
class Oracle:
    """What each micro-batch must give, by the definition: rows that are not late, and what is decided."""

    case: Case
    empty: Collection[int] = ()
    """The streams in whose joins nothing can match."""
    seen: list[float | None] = field(default_factory=list)
    rows: list[list[Row]] = field(default_factory=list)
    given: Counter[tuple[int | None, ...]] = field(default_factory=Counter)
    over: bool = False
    """Whether no row comes any more."""

    def __post_init__(self) -> None:
        self.seen = [None] * len(self.case.delays)
        self.rows = [[] for _ in self.case.delays]

    def mark(self, stream: int) -> float:
        if self.over:
            return float("inf")
        seen = self.seen[stream]
        return float("-inf") if seen is None else seen - self.case.delays[stream]

    def take(
        self, batch: Sequence[Sequence[Row]], gone_on: Mapping[int, float]
    ) -> Counter[tuple[int | None, ...]]:
        """Take a micro-batch; ``gone_on``: how far silent streams have come after it."""
        marks = [self.mark(stream) for stream in range(len(batch))]
        for stream, rows in enumerate(batch):
            self.rows[stream].extend(row for row in rows if row[1] >= marks[stream])
            times = [row[1] for row in rows]
            if times:
                before = self.seen[stream]
                self.seen[stream] = max(times) if before is None else max(before, *times)
        self.go_on(gone_on)
        found = self.decided()
        assert self.given <= found
        new = found - self.given
        self.given = found
        return new

    def go_on(self, seen: Mapping[int, float]) -> None:
        """Let streams come as far as that."""
        for stream, time in seen.items():
            known = self.seen[stream]
            self.seen[stream] = time if known is None else max(known, time)

    def decided(self) -> Counter[tuple[int | None, ...]]:
        """Return all results that no row can change any more."""
        return Counter(
            tuple(None if row is None else row[0] for row in each)
            for each, decided in self._results()
            if decided
        )

    def _results(self) -> Iterator[tuple[Tuple, bool]]:
        """Yield the rows of results of all joins, and whether each is decided."""
        shown = [n for n in range(len(self.case.delays)) if n not in self.case.hidden]
        for each, decided in self._made(0, self.case.steps):
            yield tuple(each.get(n) for n in shown), decided

    def _made(self, first: int, steps: Sequence[Step]) -> list[tuple[Tuple, bool]]:
        """Return what joins make that begin with a stream, and whether each is decided."""
        made: list[tuple[Tuple, bool]] = [({first: row}, True) for row in self.rows[first]]
        number = first + 1
        for step in steps:
            right = self._made(number, step.right)
            made = list(self._joined(made, right, first, number, step))
            number += step.size
        return made

    def _joined(
        self,
        left: Sequence[tuple[Tuple, bool]],
        tuples: Sequence[tuple[Tuple, bool]],
        first: int,
        number: int,
        step: Step,
    ) -> Iterator[tuple[Tuple, bool]]:
        """Yield what a join makes of both sides, and whether each is decided; ``first``: its first stream."""
        kind, right = step.kind, [each for each, decided in tuples if decided]
        # What windows of rows count is known up to there.
        inside = range(first, number + step.size)
        counted = [each.stream for each in self.case.every_count if each.stream in inside]
        cap = min(map(self.mark, counted), default=float("inf"))
        known = (
            cap if any(each >= number or each not in self.case.hidden for each in counted) else float("inf")
        )
        partners: set[int] = set()
        for each, before in left:
            decided = before and latest(each) < known
            met = [row for row in right if decided and self._meet(each, row, number, step)]
            met = [
                row for row in met if latest(row) < known and self._inside({**each, **row}, inside, number)
            ]
            if kind.asof:
                met = sorted(met, key=lambda row: self._far(each, row, number, step))[:1]
                yield from (({**each, **row}, self.over) for row in met)
                if kind.alone and not met:
                    yield each, self.over
                continue
            partners.update(map(id, met))
            assert not (met and number in self.empty), self.case.text
            if kind.pairs:
                yield from (({**each, **row}, True) for row in met)
            elif kind is JoinKind.SEMI and met:
                yield each, True
            if 0 in kind.preserved and kind.alone and not met and before:
                ends = {} if number in self.empty else self._left_ends(each, number, step)
                passed = all(end < min(self.mark(stream), cap) for stream, end in ends.items())
                yield each, self.over or not ends or (decided and passed and step.plain and not step.choice)
        for row in right if 1 in kind.preserved else ():
            if id(row) not in partners:
                yield row, self.over

    def _far(self, each: Tuple, row: Tuple, number: int, step: Step) -> tuple[object, ...]:
        """Return by what a tuple is nearer than others, and of several of one instant the least."""
        term, streams = step.terms[0], range(number, number + step.size)
        own = number if term.own is None else term.own
        columns = ((stream in row, row.get(stream, (0,))[0]) for stream in streams)
        return (*step.near(each[term.other][1], row[own][1]), *columns)

    def _meet(self, each: Tuple, row: Tuple, number: int, step: Step) -> bool:
        for term in step.terms:
            other, own = each.get(term.other), row.get(number if term.own is None else term.own)
            if other is None or own is None or (term.equal and other[2] != own[2]):
                return False
            if not (step.choice and term.open) and not term.low <= own[1] - other[1] <= term.high:
                return False
            if term.compared and other[3] > own[3]:
                return False
            if term is step.terms[0] and not step.compares(other[1], own[1]):
                return False
        rows = {**each, **row}
        if step.choice and not any(self._near(one, rows) for one in step.choice):
            return False
        return all(said.is_true(rows, number) for said in step.said)

    def _near(self, alternative: Sequence[Bound | Counted], rows: Tuple) -> bool:
        return all(bound.holds(rows) for bound in alternative if isinstance(bound, Bound))

    def _may_meet(self, each: Tuple, number: int, step: Step) -> bool:
        """Return whether conditions on what is there before a join alone are true."""
        before = (said for said in step.said if said.before and not said.called)
        before = (said for said in before if max(said.streams) < number)
        return all(said.is_true(each, number) for said in before)

    def _inside(self, whole: Tuple, streams: range, number: int) -> bool:
        """Return whether a row that is joined to a tuple is inside the windows of rows of that join.

        It joins ``streams``; those from ``number`` on are its right side.
        """
        last = latest(whole)
        for term in self.case.counted:
            own = whole.get(term.stream)
            if own is None:
                if term.stream > number or term.stream in self.case.hidden:
                    continue
                return False
            if not self._is_few(term, own, last):
                return False
        made = [
            (n, step) for n, step in self.case.numbered if n in streams[1:] and n + step.size - 1 in streams
        ]
        gone = (
            range(first, first + step.size) for first, step in made if step.kind.one_sided and first != number
        )
        known = {*streams}.difference(*gone)
        return all(
            any(all(self._holds(each, whole) for each in one) for one in step.choice)
            for _, step in made
            if step.counted and step.named <= known
        )

    def _holds(self, term: Bound | Counted, whole: Tuple) -> bool:
        if isinstance(term, Bound):
            return term.holds(whole)
        own = whole.get(term.stream)
        return own is not None and self._is_few(term, own, latest(whole))

    def _is_few(self, term: Counted, own: Row, last: int) -> bool:
        """Return whether few enough rows are later than one, and not later than a time."""
        later = (
            other
            for other in self.rows[term.stream]
            if own[1] < other[1] <= last and (not term.per_key or other[2] == own[2])
        )
        return sum(1 for _ in later) < term.rows

    def _left_ends(self, each: Tuple, number: int, step: Step) -> dict[int, int]:
        """Return by stream the latest time at which a row of a partner could come, none where none could."""
        asked = (
            n.stream for n in self.case.counted if n.stream < number and n.stream not in self.case.hidden
        )
        called = (stream for said in step.said if said.called for stream in said.streams if stream < number)
        others = [*asked, *called, *(term.other for term in step.terms)]
        if any(other not in each for other in others) or not self._may_meet(each, number, step):
            return {}
        found: dict[int, int] = {}
        edges = []
        for first, inside in _numbered(step.right, number + 1):
            for term in inside.terms:
                own = first if term.own is None else term.own
                edges += [(term.other, own, term.high), (own, term.other, -term.low)]
        for term in step.terms:
            own, end = number if term.own is None else term.own, each[term.other][1] + term.high
            found[own] = min(end, found.get(own, end))
        for _ in range(step.size):
            for source, target, far in edges:
                if source in found:
                    end = found[source] + far
                    found[target] = min(end, found.get(target, end))
        return found


def latest(each: Tuple) -> int:
    """Return the latest time of the rows of a tuple."""
    return max(row[1] for row in each.values())


def found_in(
    plan: PhysicalPlan, shown: Sequence[int], blocks: Sequence[pa.RecordBatch]
) -> Counter[tuple[int | None, ...]]:
    """Return the results in blocks, by the numbers of their rows."""
    (output,) = plan.outputs
    columns = {
        stream: stored_column(plan, stream, number).name
        for stream, number in output.columns
        if plan.streams[stream].columns[number].output == "n"
    }
    found: Counter[tuple[int | None, ...]] = Counter()
    for block in blocks:
        sides = [
            block.column(columns[side]).to_pylist()
            if columns[side] in block.schema.names
            else [None] * block.num_rows
            for side in shown
        ]
        found.update(zip(*sides, strict=True))
    return found


def block(plan: PhysicalPlan, stream: int, rows: Sequence[Row]) -> pa.RecordBatch:
    number, time, key, value = (np.array(each, np.int64) for each in zip(*rows, strict=True))
    columns = {"n": number, "ts": time * SECOND, "k": key, "v": value}
    of_rows = {NEVER: value < value, "v >= 1)": value >= 1, "v IS NULL)": value < 0, "k, 0)": key}
    # That a key and the same in the place of NULL are equal.
    of_rows |= dict.fromkeys(("k, 0))", "k)"), value >= 0)
    return block_of(plan, stream, {**columns, **of_rows})


def absent(plan: PhysicalPlan) -> dict[str, pa.Scalar]:
    """Return what columns are of streams that have no row."""
    found = {}
    for stream, scan in enumerate(plan.streams):
        texts = {stored_column(plan, stream, n).name: each.expression for n, each in enumerate(scan.columns)}
        texts |= {code_name(stream, n): each.expressions[0] for n, each in enumerate(scan.codes)}
        for name, text in texts.items():
            value = ABSENT.get(text.replace("`", "").rpartition(".")[2])
            bare = text.startswith("(")
            found[name] = pa.scalar(value, pa.bool_() if bare else pa.int64())
    return found


END = 1_000_000
"""The number of the first row that is written to end a case, and its time."""


def match_time(times: Mapping[int, int], result: tuple[int | None, ...]) -> int:
    """Return the latest time of the rows of a result."""
    return max(END if each >= END else times[each] for each in result if each is not None)


def before_the_end(results: Counter[tuple[int | None, ...]]) -> Counter[tuple[int | None, ...]]:
    """Return the results without rows that end a case."""
    return Counter({each: times for each, times in results.items() if all((n or 0) < END for n in each)})


def check(case: Case, partitions: int = 1, stretch: int = STRETCH_BYTES) -> None:
    """Compare what workers give for each micro-batch of a case with what they must."""
    try:
        planned = case.planned()
    except WJoinError as error:
        # No result can be inside the windows, or a condition may hold of what is not there.
        of_rows = "no equality names" in error.message
        assert error.code in ("WJ110", "WJ302", "WJ306", "WJ107") or of_rows, (case.text, error)
        return
    plan, joins = case.plan(), planned.bound.tree.joins
    if any(scan.filters or {*scan.meets} - {"false"} for scan in plan.streams):
        # What these are for is done before rows come to workers.
        return
    shown = [n for n in range(len(case.delays)) if n not in case.hidden]
    workers = LocalWorkers(plan, partitions, stretch, absent=absent(plan), predicates=PREDICATES)
    oracle = Oracle(case, {each.on for each in joins if each.empty})
    for worker in (each for stage in workers._stages for each in stage):
        worker.store = Stamped()
    exact = all(
        1 not in each.kind.preserved and not each.kind.asof and not each.choice and each.plain
        for _, each in case.numbered
    )
    # An inner join may be made before those that it follows, which then wait for what it counts.
    later = dropwhile(lambda step: step.kind is JoinKind.INNER, case.steps)
    moved = bool(case.every_count) and any(step.kind is JoinKind.INNER for step in later)
    found: Counter[tuple[int | None, ...]] = Counter()
    times = {row[0]: row[1] for batch in case.batches for rows in batch for row in rows}
    least = -END
    ends = [[(END + n, END, 90 + n, 9)] for n in range(len(case.delays))]
    batches = case.batches if case.complete else (*case.batches, ends)
    kernels = case.kernels or ["HW"] * (len(case.batches) + 1)
    plans = {each: case.plan(each) for each in {*kernels}}
    for clock, (batch, kernel) in enumerate(zip(batches, kernels, strict=False)):
        workers.change(plans[kernel])
        blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
        new = found_in(plan, shown, workers.run(blocks, Counts(), clock * SECOND if plan.clocked else None))
        expected = oracle.take(batch, come(plan, workers) if plan.clocked else {})
        assert moved or (new == expected if exact else expected <= new + found), case.text
        found += new
        assert all(match_time(times, each) >= least for each in new), case.text
        known = least_to_come(plan, workers.manifest(-1).seen)
        least = least if known is None else known // SECOND
        # As after a restart.
        for worker in (each for stage in workers._stages for each in stage):
            worker.manifest = written_manifest(worker.manifest.encode())
    if case.complete:
        found += found_in(plan, shown, workers.run({}, Counts(), ended=True))
        # The query goes on, and nothing that has been decided may change.
        clock = END * SECOND if plan.clocked else None
        for batch in (*case.more, ends) if case.more else ():
            oracle.go_on(come(plan, workers))
            blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
            found += found_in(plan, shown, workers.run(blocks, Counts(), clock))
            oracle.take(batch, {})
    oracle.over = True
    assert before_the_end(found) == before_the_end(oracle.decided()), case.text


def come(plan: PhysicalPlan, workers: LocalWorkers) -> dict[int, float]:
    """Return how far each stream has come, as the stage that it enters judges its next rows."""
    found: dict[int, float] = {}
    for number, stage in enumerate(plan.stages):
        later = [workers.manifest(each).seen for each in range(number, len(plan.stages))]
        for each in stage.inputs:
            times = [seen[each.members[0]] for seen in later if each.members[0] in seen]
            if each.stage is None and times:
                found[each.members[0]] = max(times if plan.asks_later else times[:1]) / SECOND
    return found


@pytest.mark.parametrize(("partitions", "stretch"), CUTS)
def test_every_result_of_a_tree_comes_once_in_the_micro_batch_that_decides_it(
    partitions: int, stretch: int
) -> None:
    """What a RIGHT or FULL JOIN tells of its right side, and an ASOF JOIN takes, is compared at the end."""

    @given(cases())
    def run(case: Case) -> None:
        check(case, partitions, stretch)

    run()


def check_tables(case: Case, partitions: int = 1, stretch: int = STRETCH_BYTES) -> None:
    """Compare what workers give for the rows of a case as tables, all at once, with what they must."""
    try:
        planned = case.planned(streaming=False)
    except WJoinError as error:
        of_rows = "no equality names" in error.message
        assert error.code in ("WJ110", "WJ302", "WJ306", "WJ107") or of_rows, (case.text, error)
        return
    plan = planned.physical
    if any(scan.filters or {*scan.meets} - {"false"} for scan in plan.streams):
        return
    if not (plan.asof or plan.counted):
        # Spark itself runs the other joins of tables.
        return
    oracle = Oracle(case, over=True)
    oracle.rows = [[row for batch in case.batches for row in batch[n]] for n in range(len(case.delays))]
    blocks = {stream: block(plan, stream, each) for stream, each in enumerate(oracle.rows) if each}
    shown = [n for n in range(len(case.delays)) if n not in case.hidden]
    workers = LocalWorkers(plan, partitions, stretch, absent=absent(plan), predicates=PREDICATES)
    assert found_in(plan, shown, workers.run(blocks, Counts())) == oracle.decided(), case.text


@pytest.mark.parametrize(("partitions", "stretch"), [(1, STRETCH_BYTES), (3, STRETCH_BYTES), (1, 200)])
@pytest.mark.parametrize(
    ("rows_counted", "rows_chosen"), [(False, False), (True, False), (True, True)], ids=["asof", "rows", "or"]
)
def test_tables_have_the_same_results_where_an_asof_join_or_a_window_of_rows_is_among_the_joins(
    partitions: int, stretch: int, *, rows_counted: bool, rows_chosen: bool
) -> None:
    @given(cases(rows_counted=rows_counted, rows_chosen=rows_chosen))
    def run(case: Case) -> None:
        check_tables(case, partitions, stretch)

    run()


@pytest.mark.parametrize(("partitions", "stretch"), CUTS)
def test_windows_of_rows_belong_to_each_join_of_what_has_a_row(partitions: int, stretch: int) -> None:
    @given(cases(rows_counted=True))
    def run(case: Case) -> None:
        check(case, partitions, stretch)

    run()


@pytest.mark.parametrize(("partitions", "stretch"), CUTS)
def test_windows_of_rows_joined_by_or_belong_to_their_join_and_later_ones(
    partitions: int, stretch: int
) -> None:
    @given(cases(rows_counted=True, rows_chosen=True) | cases(rows_chosen=True))
    def run(case: Case) -> None:
        check(case, partitions, stretch)

    run()


def test_a_later_row_ends_a_window_of_rows_of_an_or_for_later_joins() -> None:
    """A has B of the same second, and the C that comes before another A; not so the later C."""
    near, wide = Term(0, -9, 9, False), Term(0, -9, 9, False)
    choice = [[Bound(0, 1, 0, 0)], [Bound(0, 1, -9, 9), Counted(0, 1, per_key=True)]]
    steps = [Step(JoinKind.LEFT, [near], choice=choice), Step(JoinKind.LEFT, [wide])]
    batches = [
        [[(0, 1, 1, 0), (1, 3, 0, 0)], [(2, 1, 1, 0), (3, 2, 0, 0)], [(4, 2, 1, 0), (5, 3, 0, 0)]],
        [[(6, 5, 0, 0)], [(7, 4, 0, 0)], [(8, 6, 0, 0), (9, 6, 1, 0)]],
    ]
    check(Case(steps, [0, 0, 0], batches, complete=True))


def test_what_a_later_on_says_of_earlier_streams_is_no_matter_of_their_joins() -> None:
    """A row of C has its partner, also where there is no B for the ON of D to compare it with."""
    window = Term(0, -5, 5, False)
    compared = Said([1, 2], *PAIRS[0], before=True)
    steps = [Step(JoinKind.LEFT, [window]), Step(JoinKind.LEFT, [window])]
    steps.append(Step(JoinKind.LEFT, [window], [compared]))
    batches = [[[(0, 0, 1, 0)], [], [(1, 1, 1, 0)], []]]
    case = Case(steps, [0] * 4, batches, complete=False)
    assert case.planned().bound.tree.joins[1].asked == {0, 2}
    check(case)


def test_rows_are_kept_for_those_that_an_asof_join_before_gives_late() -> None:
    """The row of B is old when the row of A takes it, and then looks for a row of C that is older still."""
    window = Term(0, -9, 9, False), Term(1, -6, 6, False)
    steps = [
        Step(JoinKind.LEFT_ASOF, [window[0]], match=">="),
        Step(JoinKind.LEFT_ASOF, [window[1]], match=">="),
    ]
    batches = [[[(1, 8, 0, 0)], [(2, 1, 0, 0)], [(3, 0, 0, 0)]], [[], [(4, 7, 1, 0)], [(5, 20, 1, 0)]]]
    check(Case(steps, [0, 0, 0], batches, complete=False))


def test_silent_streams_of_a_tree_go_on_and_lose_no_row() -> None:
    """Each join lets its stream go on, and the next one knows what it has decided."""
    terms = Term(0, -2, 5, False), Term(0, -1, 6, False)
    case = Case([Step(JoinKind.LEFT, [each]) for each in terms], [0, 0, 0], [], complete=False)
    plan = case.plan()
    first, *others = plan.streams
    plan = replace(plan, streams=(first, *(replace(each, idle_after=SECOND) for each in others)))
    workers = LocalWorkers(plan)
    found = []
    begin = {0: [(1, 8, 1, 0), (2, -1, 1, 0)], 1: [(3, 7, 1, 0)], 2: [(4, 9, 0, 0)]}
    later = [{0: [(5 + step, 100 * step, 0, 0)]} for step in range(1, 5)]
    for clock, batch in enumerate([begin, *later]):
        blocks = {stream: block(plan, stream, rows) for stream, rows in batch.items()}
        results = workers.run(blocks, Counts(), 10 * clock * SECOND)
        found.append(found_in(plan, (0, 1, 2), results))
    assert found == [
        Counter({(2, None, None): 1}),
        Counter({(1, 3, None): 1}),
        *(Counter({(4 + step, None, None): 1}) for step in range(2, 5)),
    ]


def test_streams_of_a_tree_go_on_with_one_that_enters_later() -> None:
    """Both of the first join are silent: it learns of the third stream from the state of the second join."""
    terms = Term(0, -2, 5, False), Term(0, -1, 6, False)
    steps = [Step(JoinKind.LEFT, [each]) for each in terms]
    begin = [[(1, 8, 1, 0)], [(2, 9, 0, 0)], [(3, 9, 0, 0)]]
    later = [[[], [], [(3 + step, 100 * step, 0, 0)]] for step in range(1, 5)]
    case = Case(steps, [0, 0, 0], [begin, *later], complete=False, idle=[1, 1, None])
    check(case)
    workers = LocalWorkers(case.plan())
    for clock, batch in enumerate(case.batches):
        blocks = {stream: block(case.plan(), stream, rows) for stream, rows in enumerate(batch) if rows}
        workers.run(blocks, Counts(), clock * SECOND)
    # One micro-batch behind the third stream.
    assert come(case.plan(), workers) == {0: 300, 1: 300, 2: 400}


def test_rows_of_joins_before_that_could_be_partners_of_a_decided_row_are_late() -> None:
    """All streams have ended, and the row of C has been told as one without a partner."""
    terms = Term(0, -2, 5, False), Term(0, -3, 4, False)
    steps = [Step(JoinKind.LEFT, [terms[0]]), Step(JoinKind.FULL, [terms[1]])]
    more = [[[(2, 8, 1, 0), (3, 13, 1, 0), (4, 14, 1, 0)], [(5, 14, 1, 0)], []]]
    case = Case(steps, [20, 20, 20], [[[], [], [(1, 10, 1, 0)]]], complete=True, more=more)
    check(case)
    workers = LocalWorkers(case.plan())
    workers.run({2: block(case.plan(), 2, [(1, 10, 1, 0)])}, Counts())
    workers.run({}, Counts(), ended=True)
    counts = Counts()
    workers.run({0: block(case.plan(), 0, more[0][0])}, counts)
    assert counts.of(0)["late"] == 2


def test_a_row_that_lacks_another_holds_groups_back_by_its_own_windows() -> None:
    """A waits for C as long as its own window says; that of B is shorter, and B is not there."""
    terms = Term(0, 10, 12, False), Term(0, -1, 6, False)
    times = [(100, 100, 100), (1000, 1000, 125), (1001, 1001, 126), (1002, 1002, 400), (3000, 3000, 3000)]
    batches = [
        [[(3 * step + stream, time, 0 if stream else 1, 0)] for stream, time in enumerate(each)]
        for step, each in enumerate(times)
    ]
    steps = [Step(JoinKind.LEFT, [each]) for each in terms]
    check(Case(steps, [20, 20, 20], batches, complete=False))


def test_a_row_waits_for_both_streams_of_the_pair_that_an_asof_join_takes() -> None:
    """A and C have gone on when the row of B comes that makes the nearest pair."""
    pair = Step(JoinKind.INNER, [Term(1, -3, 3, False)])
    steps = [Step(JoinKind.LEFT_ASOF, [Term(0, -9, 0, False, own=2)], match=">=", right=[pair])]
    begin = [[(1, 9, 0, 0)], [(2, 4, 0, 0)], [(3, 5, 0, 0), (4, 8, 0, 0)]]
    later = [[[(5, 99, 1, 0)], [], [(6, 99, 1, 0)]], [[], [(7, 7, 0, 0)], []], [[], [(8, 99, 2, 0)], []]]
    case = Case(steps, [0, 0, 0], [begin, *later], complete=False)
    check(case)
    workers = LocalWorkers(case.plan())
    found = []
    for batch in case.batches:
        blocks = {stream: block(case.plan(), stream, rows) for stream, rows in enumerate(batch) if rows}
        found.append(found_in(case.plan(), (0, 1, 2), workers.run(blocks, Counts())))
    assert found[:3] == [Counter()] * 3
    assert found[3][1, 7, 4] == 1
