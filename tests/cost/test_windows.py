"""What is estimated of windows of very different widths, beside the combinations of random rows."""

from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt
import pytest
from choices import measure

from tests.kit.planned import block_of, plan_over, stream_of
from tests.tiers import tiers
from wjoin.planner.catalog import Estimate, SiteFacts
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.plan.physical import Method, Shipping
from wjoin.planner.plan.stage_kinds import Bounds
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.bounds import Windows

SECOND = 1_000_000
COLUMNS = {"k": "bigint", "m": "bigint", "v": "double"}
VALUES = 3
"""Different values of a key."""

ROWS = 200
"""Rows of every stream in results by which a simulation knows how many there are, within a tenth or so."""

MOST = 300_000
"""Rows of a stream, and partial combinations at a time, of a simulation."""

KEYS = ("one key", "a key of each two", "no key")

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """Windows between streams A, B, …: alternatives of (first, second, least, greatest), in microseconds."""

    streams: int
    alternatives: tuple[tuple[tuple[int, int, int, int], ...], ...]
    keys: str

    @property
    def windows(self) -> str:
        """The window clause."""

        def term(first: int, second: int, least: int, greatest: int) -> str:
            names = f"({'ABCDE'[first]}, {'ABCDE'[second]})"
            return f"WINDOW {names} BETWEEN {least} MICROSECONDS AND {greatest} MICROSECONDS"

        return " OR ".join(" AND ".join(term(*each) for each in every) for every in self.alternatives)

    @property
    def conditions(self) -> list[str]:
        """The conditions of WHERE."""
        names = "ABCDE"[: self.streams]
        if self.keys == "one key":
            return [f"A.k = {name}.k" for name in names[1:]]
        if self.keys == "a key of each two":
            columns = [("k", "k") if place % 2 == 0 else ("m", "m") for place in range(self.streams - 1)]
            return [
                f"{names[place]}.{one} = {names[place + 1]}.{other}"
                for place, (one, other) in enumerate(columns)
            ]
        return []

    def planned(self, rates: list[float], cores: int) -> PlannedSelect:
        """Plan it over streams of some rates."""
        known = {
            "distinct.k": VALUES,
            "heaviest.k": 1 / VALUES,
            "distinct.m": VALUES,
            "heaviest.m": 1 / VALUES,
        }
        relations = [stream_of(COLUMNS, {"rate": rate, **known}) for rate in rates]
        sources = ", ".join(f"{name.lower()} {name}" for name in "ABCDE"[: self.streams])
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        sql = f"SELECT A.k FROM {sources} {self.windows}{where}"
        return plan_over(sql, relations, costs=CostSettings(cores=cores))


def drawn(seed: int) -> Case:
    """Draw windows from a millisecond to a thousand seconds, as a tree and now and then one more."""
    random = np.random.default_rng(seed)
    streams = int(random.integers(2, 5))
    pairs = [(int(random.integers(0, second)), second) for second in range(1, streams)]
    others = [pair for pair in combinations(range(streams), 2) if pair not in pairs]
    if others and random.random() < 0.5:
        pairs.append(others[int(random.integers(0, len(others)))])

    def window() -> tuple[int, int]:
        width = int(10 ** random.uniform(-3, 3) * SECOND)
        kind = random.integers(0, 3)
        return (-width, width) if kind == 0 else (0, width) if kind == 1 else (-width // 10, width)

    alternatives = tuple(
        tuple((*pair, *window()) for pair in pairs) for _ in range(int(random.choice([1, 1, 2, 3])))
    )
    return Case(streams, alternatives, str(random.choice(KEYS)))


def simulated(case: Case, alternatives: list[Windows], hull: Windows) -> tuple[list[float], float]:
    """Return the rates of random rows, a second, and how many results they make in a second.

    Ever more rows are drawn, until as many are in some result that their number is no chance.
    """
    longest = max(abs(hull.between(*pair) or 0) for pair in permutations(range(case.streams), 2))
    random = np.random.default_rng(7)
    length = 4 * longest
    rows = 2_000
    while True:
        times = [np.sort(random.integers(0, length, rows)) for _ in range(case.streams)]
        keys = {column: [random.integers(0, VALUES, rows) for _ in times] for column in "km"}
        found, met = _results(case, times, keys, alternatives, length)
        if met >= ROWS or rows >= MOST:
            return [rows / length * SECOND] * case.streams, found
        rows *= 3


def _results(
    case: Case,
    times: list[Times],
    keys: dict[str, list[Times]],
    alternatives: list[Windows],
    length: int,
) -> tuple[float, int]:
    """Return how many results a second begin far from both ends, and how many rows are in some."""
    found = [
        _inside(case, times, keys, windows, alternatives[:place], length)
        for place, windows in enumerate(alternatives)
    ]
    most = max(found, key=lambda each: each[0])
    return sum(each[0] for each in found) / (length / 2) * SECOND, most[1]


def _inside(
    case: Case,
    times: list[Times],
    keys: dict[str, list[Times]],
    windows: Windows,
    earlier: list[Windows],
    length: int,
) -> tuple[float, int]:
    """Count the results inside an alternative that are in no earlier one, and the fewest rows of a stream."""

    def after(one: int, other: int) -> int:
        return windows.between(one, other) or 0

    def width(one: int, other: int) -> int:
        return after(one, other) + after(other, one)

    first = min(combinations(range(case.streams), 2), key=lambda pair: width(*pair))[0]
    start = np.flatnonzero((times[first] >= length / 4) & (times[first] < 3 * length / 4))
    found = {first: start}
    scale = 1.0
    random = np.random.default_rng(11)
    while len(found) < case.streams:
        waiting = [number for number in range(case.streams) if number not in found]
        number = min(waiting, key=lambda each: min(width(known, each) for known in found))
        low = np.max([times[k][rows] - after(number, k) for k, rows in found.items()], axis=0)
        high = np.min([times[k][rows] + after(k, number) for k, rows in found.items()], axis=0)
        begin = np.searchsorted(times[number], low)
        count = np.maximum(0, np.searchsorted(times[number], high, "right") - begin)
        # Where there are many, some of the rows that a partial combination meets stand for all.
        part = min(1.0, MOST / max(1, count.sum()))
        scale /= part
        of = np.repeat(np.arange(len(count)), random.binomial(count, part))
        place = begin[of] + (random.random(len(of)) * count[of]).astype(np.int64)
        if part == 1.0:
            place = begin[of] + np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
        found = {**{each: rows[of] for each, rows in found.items()}, number: place}
        keep = np.ones(len(of), bool)
        for condition in case.conditions:
            left, right = ("ABCDE".index(side.strip()[0]) for side in condition.split("="))
            if number in (left, right) and {left, right} <= set(found):
                column = keys[condition.split(".")[1][0]]
                keep &= column[left][found[left]] == column[right][found[right]]
        found = {each: rows[keep] for each, rows in found.items()}
    new = np.ones(len(next(iter(found.values()))), bool)
    for other in earlier:
        held = np.ones(len(new), bool)
        for one, two in combinations(found, 2):
            apart = times[two][found[two]] - times[one][found[one]]
            held &= (apart <= (other.between(one, two) or 0)) & (-apart <= (other.between(two, one) or 0))
        new &= ~held
    return scale * float(new.sum()), min(len(np.unique(rows[new])) for rows in found.values())


@pytest.mark.parametrize(
    ("seed", "cores"),
    tiers(
        [*((seed, 1) for seed in range(40)), (9, 4), (19, 4), (0, 4), (7, 4)],
        thorough=[*((seed, 1) for seed in (5, 8, 13, *range(17, 40))), (0, 4), (7, 4), (9, 4)],
    ),
)
def test_results_of_windows_of_any_ratio_are_as_many_as_expected(seed: int, cores: int) -> None:
    case = drawn(seed)
    graph = case.planned([1.0] * case.streams, 1).graph
    rates, expected = simulated(case, [each.windows for each in graph.branches], graph.windows)
    found = case.planned(rates, cores)
    for each in found.candidates:
        if each.plan.method is Method.MULTIWAY:
            assert 0.5 < each.estimated.cost.results / expected < 2
    assert all(stage.bounds is Bounds.EXACT for stage in found.physical.stages)


DOORS = "WINDOW (D, L) = 1 SECOND AND WINDOW (L, A) = 1 HOUR"
PLACES = {"badge": "bigint", "place": "string", "picture": "string"}


def test_bounds_that_keep_ten_times_as_much_are_not_taken() -> None:
    """A narrow window in the first stage, and a wide one in the second."""
    doors, lifts, alarms = (stream_of(PLACES, {"rate": rate}) for rate in (100, 100, 1))
    where = "D.badge = L.badge AND edit_distance(L.place, A.place) <= 1"
    found = plan_over(f"SELECT D.badge FROM d D, l L, a A {DOORS} WHERE {where}", [doors, lifts, alarms])
    assert {stage.bounds for stage in found.physical.stages} == {Bounds.EXACT}
    assert found.candidates[0].estimated.cost.state_rows < 80_000
    wider = [each for each in found.candidates if each.plan.stages[0].bounds is not Bounds.EXACT]
    assert all(each.estimated.cost.results == pytest.approx(144_000, rel=0.1) for each in wider)


@pytest.mark.parametrize(
    "windows", [DOORS, f"{DOORS} OR WINDOW (D, L) = 1 HOUR AND WINDOW (L, A) = 1 SECOND"]
)
def test_a_site_ships_whole_rows_where_nearly_all_of_them_match(windows: str) -> None:
    doors, lifts, alarms = (stream_of(PLACES, {"rate": rate, "distinct.badge": 10}) for rate in (100, 100, 1))
    widths = {"ts": 8.0, "badge": 8.0, "place": 20.0, "picture": 100.0}
    site = SiteFacts(widths, Estimate(0.002), Estimate(1e6))
    where = "D.badge = L.badge AND D.badge = A.badge"
    sql = f"SELECT D.badge, A.picture FROM d D, l L, a A {windows} WHERE {where}"
    (found,) = plan_over(sql, [doors, lifts, replace(alarms, site=site)]).shipments
    assert found.matched.value > 0.9
    assert found.chosen is Shipping.FULL


def test_state_of_partial_results_is_as_expected() -> None:
    """Rows of a partial result that are far apart leave the later stages sooner."""
    rates, reach = (100, 100, 100), 5
    known = {"distinct.k": 20, "heaviest.k": 0.05, "distinct.m": 20, "heaviest.m": 0.05}
    streams = [stream_of(COLUMNS, {"rate": rate, **known}) for rate in rates]
    narrow, wide = "100 MILLISECONDS", "4 SECONDS"
    for first, second in ((wide, narrow), (narrow, wide)):
        windows = f"WINDOW (A, B) = {first} AND WINDOW (B, C) = {second}"
        sql = f"SELECT A.k FROM a A, b B, c C {windows} WHERE A.k = B.k AND B.m = C.m"
        by_stages = {each.layout: each for each in reversed(plan_over(sql, streams).candidates)}
        for candidate in (each for each in by_stages.values() if each.plan.method is Method.MULTIWAY):
            random = np.random.default_rng(7)
            batches = [
                {
                    number: block_of(
                        candidate.plan,
                        number,
                        {
                            "ts": np.sort(random.integers(0, SECOND, rate)) + second * SECOND,
                            "k": random.integers(0, 20, rate),
                            "m": random.integers(0, 20, rate),
                        },
                    )
                    for number, rate in enumerate(rates)
                }
                for second in range(reach + 8)
            ]
            measured, cost = measure(candidate.plan, batches), candidate.estimated.cost
            assert measured.results == pytest.approx(cost.results, rel=0.1)
            assert measured.state_rows == pytest.approx(cost.state_rows, rel=0.2)
            assert measured.comparisons == pytest.approx(cost.comparisons, rel=0.3)
