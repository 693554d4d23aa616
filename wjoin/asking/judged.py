"""Combinations of rows, judged: which is nearest to a result, and what it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wjoin.asking.needs import Bound, Kind, Need, Needs
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.lengths import human

_HOUR = 3_600_000_000
_QUARTER = 900_000_000
_MOST_HOURS = 14
"""Time zones are at most so many hours from UTC."""

_UNITS = ((1_000, "milliseconds"), (1_000_000, "microseconds"), (1_000_000_000, "nanoseconds"))


@dataclass(frozen=True)
class Combination:
    """A row of each stream: their ``times`` (None: NULL, or none), whether each condition ``holds``, the
    ``sides`` of each equality as text, each row in words (``rows``) and its file, None where it has none."""

    times: tuple[int | None, ...]
    holds: tuple[bool, ...]
    sides: tuple[tuple[str | None, str | None] | None, ...]
    rows: tuple[str, ...]
    files: tuple[str | None, ...]


@dataclass(frozen=True)
class Fault:
    """A need that a combination does not satisfy, in words, and what may be the reason (``hint``).

    ``beyond``: by how much, where it is a window.
    """

    kind: Kind
    text: str
    beyond: int = 0
    hint: str = ""

    @property
    def lines(self) -> list[str]:
        """The fault as it is told."""
        return [f"{self.text}.", *([f"  {self.hint}"] if self.hint else [])]


@dataclass(frozen=True)
class Verdict:
    """What a combination lacks, in the order of asking, and the needs that it satisfies."""

    combination: Combination
    faults: tuple[Fault, ...]
    satisfied: tuple[str, ...]

    @property
    def nearness(self) -> tuple[int, int]:
        """Less is nearer to a result."""
        return len(self.faults), sum(each.beyond for each in self.faults)


def judged(needs: Needs, combination: Combination) -> Verdict:
    """Return what a combination lacks. Pure."""
    faults: list[Fault] = []
    satisfied: list[str] = []
    for need, holds, sides in zip(needs.conditions, combination.holds, combination.sides, strict=True):
        if holds:
            satisfied.append(need.text)
        else:
            faults.append(Fault(need.kind, _condition(need, sides)))
    outside, inside = _windows(needs, combination.times)
    faults += outside
    return Verdict(
        combination, tuple(sorted(faults, key=lambda each: each.kind.value)), (*satisfied, *inside)
    )


def _windows(needs: Needs, times: Sequence[int | None]) -> tuple[list[Fault], list[str]]:
    """Return the windows of the nearest alternative that are not kept, and those that are."""
    undated = [
        Fault(Kind.WINDOW, f"{name} has no event time: it is NULL")
        for name, time, value in zip(needs.names, needs.times, times, strict=True)
        if time is not None and value is None
    ]
    if undated:
        return undated, []
    known = [0 if each is None else each for each in times]
    found: list[tuple[list[Fault], list[str]]] = []
    for bounds in needs.alternatives:
        beyond = [(each, each.beyond(known)) for each in bounds]
        outside = [_outside(needs, each, known, by) for each, by in beyond if by]
        found.append((outside, [needs.shown(each) for each, by in beyond if not by]))
    best = min(found, key=lambda each: sum(fault.beyond for fault in each[0]), default=([], []))
    if best[0] and len(found) > 1:
        more = f" (the nearest of {len(found)} alternatives)"
        return [replace(each, text=each.text + more) for each in best[0]], best[1]
    return best


def _outside(needs: Needs, bound: Bound, times: Sequence[int], by: int) -> Fault:
    """Return what is told of a window outside of which times are."""
    first, second = needs.names[bound.first], needs.names[bound.second]
    later = times[bound.second] - times[bound.first]
    much = "too late" if bound.most is not None and later > bound.most else "too early"
    how = f"{second} is {_apart(needs, later)} {first}: {human(by, needs.kind)} {much}"
    return Fault(Kind.WINDOW, f"{needs.shown(bound)}; {how}", by, suspicion(needs, bound, times))


def _apart(needs: Needs, later: int) -> str:
    if later == 0:
        return "at the time of"
    return f"{human(abs(later), needs.kind)} {'later' if later > 0 else 'earlier'} than"


def suspicion(needs: Needs, bound: Bound, times: Sequence[int]) -> str:
    """Return what else the times of two rows may mean, another unit or time zone; empty if nothing."""
    small, large = sorted((bound.first, bound.second), key=lambda each: times[each])

    def inside(stream: int, time: int) -> bool:
        return not bound.beyond([time if each == stream else own for each, own in enumerate(times)])

    for scale, unit in _UNITS if times[small] > 0 else ():
        if inside(large, times[large] // scale) or inside(small, times[small] * scale):
            names = f"{needs.names[large]} is {scale:,} times that of {needs.names[small]}"
            return f"The time of {names}: is one of them in {unit}?"
    if needs.kind is TimeKind.INTEGRAL:
        return ""
    zone = round((times[bound.second] - times[bound.first]) / _QUARTER) * _QUARTER
    if 0 < abs(zone) <= _MOST_HOURS * _HOUR and inside(bound.second, times[bound.second] - zone):
        return f"Moved by {human(abs(zone), needs.kind)} it would be inside: are both in one time zone?"
    return ""


def _condition(need: Need, sides: tuple[str | None, str | None] | None) -> str:
    if sides is None:
        return f"{need.text} is not true"
    left, right = sides
    if left is None or right is None:
        empty = [text for (_, text), value in zip(need.sides, sides, strict=True) if value is None]
        return f"{need.text}: {' and '.join(empty)} is NULL, which equals nothing"
    return f"{need.text}: {left!r} is not {right!r}{near_miss(left, right)}"


def near_miss(left: str, right: str) -> str:
    """Return in what two texts differ that look alike."""
    if left == right:
        return ": both are written the same, but their types differ"
    if left.strip() == right.strip():
        return ", but for spaces"
    if left.strip().lower() == right.strip().lower():
        return ", but for upper and lower case"
    if _number(left) is not None and _number(left) == _number(right):
        return ", though both are one number: compare them as numbers"
    return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
