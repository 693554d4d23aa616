"""Combinations of rows, judged: which is nearest to a result, and what it lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wjoin.asking.alternatives import Bound
from wjoin.asking.needs import Kind, Need, Needs
from wjoin.grammar.plurals import counted
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.lengths import human

_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_QUARTER = 900_000_000
_MOST_HOURS = 14
"""Time zones are at most so many hours from UTC."""

UNITS = ((1_000, "milliseconds"), (1_000_000, "microseconds"), (1_000_000_000, "nanoseconds"))


@dataclass(frozen=True)
class Combination:
    """A row of each stream: their ``times`` (None: NULL, or none) and each ``rows`` in words.

    By condition: whether it ``holds``, how far the rows are ``beyond`` it (None: NULL, or no window) and what
    is ``told`` of it as text, of an equality both sides. ``counts``: how many rows each window of rows
    counts, empty while that is not known.
    """

    times: tuple[int | None, ...]
    holds: tuple[bool, ...]
    beyond: tuple[int | None, ...]
    told: tuple[tuple[str | None, ...], ...]
    rows: tuple[str, ...]
    counts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fault:
    """A need that a combination does not satisfy, in words, and what may be the reason (``hint``).

    ``beyond``: by how much, where it is a window. ``later``: as that of the need.
    """

    kind: Kind
    text: str
    beyond: int = 0
    hint: str = ""
    later: bool = False

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
    found = zip(needs.conditions, combination.holds, combination.beyond, combination.told, strict=True)
    for need, holds, beyond, told in found:
        if holds:
            satisfied.append(need.text)
        elif need.beyond:
            faults.append(_said(needs, need, beyond))
        else:
            faults.append(Fault(need.kind, _condition(need, told), later=need.later))
    outside, inside = _windows(needs, combination)
    faults += outside
    in_order = sorted(faults, key=lambda each: (each.later, each.kind.value))
    return Verdict(combination, tuple(in_order), (*satisfied, *inside))


def _said(needs: Needs, need: Need, beyond: int | None) -> Fault:
    """Return what is told of a window that a row says itself, and that another row is outside of."""
    if beyond is None:
        return Fault(need.kind, f"{need.text}; that is NULL, so that nothing is inside")
    much = "late" if need.after else "early"
    return Fault(
        need.kind, f"{need.text}; {needs.names[need.other]} is {human(beyond, needs.kind)} too {much}", beyond
    )


def _windows(needs: Needs, combination: Combination) -> tuple[list[Fault], list[str]]:
    """Return the windows of the nearest alternative that are not kept, and those that are."""
    times = combination.times
    undated = [
        Fault(Kind.WINDOW, f"{name} has no event time: it is NULL")
        for name, time, value in zip(needs.names, needs.times, times, strict=True)
        if time is not None and value is None
    ]
    if undated:
        return undated, []
    known = [0 if each is None else each for each in times]
    found: list[tuple[list[Fault], list[str]]] = []
    asked = needs.asked or ((),) * len(needs.alternatives)
    for bounds, numbers in zip(needs.alternatives, asked, strict=True):
        beyond = [(each, each.beyond(known)) for each in bounds]
        outside = [_outside(needs, each, known, by) for each, by in beyond if by]
        inside = [needs.shown(each) for each, by in beyond if not by]
        for number in numbers if combination.counts else ():
            fault, shown = _many(needs, number, combination.counts[number]), needs.counts[number]
            outside += [] if fault is None else [fault]
            inside += [needs.shown_count(shown)] if fault is None else []
        found.append((outside, inside))
    best = min(
        found, key=lambda each: (sum(fault.beyond for fault in each[0]), len(each[0])), default=([], [])
    )
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


def _many(needs: Needs, number: int, later: int) -> Fault | None:
    """Return what is told of a window of rows where so many ``later`` rows count, None inside it."""
    count = needs.counts[number]
    if later < count.rows:
        return None
    name, more = needs.names[count.stream], later - count.rows + 1
    if count.test:
        text = f"it began anew {counted(later, 'time')} after this row of {name}"
    else:
        text = f"{counted(later, 'row')} of {name} came later, {more:,} too many"
    return Fault(Kind.WINDOW, f"{needs.shown_count(count)}; {text}, up to the last of these rows")


def _apart(needs: Needs, later: int) -> str:
    if later == 0:
        return "at the time of"
    return f"{human(abs(later), needs.kind)} {'later' if later > 0 else 'earlier'} than"


def suspicion(needs: Needs, bound: Bound, times: Sequence[int]) -> str:
    """Return what else the times of two rows may mean, another unit or time zone; empty if nothing."""
    small, large = sorted((bound.first, bound.second), key=lambda each: times[each])

    def inside(stream: int, time: int) -> bool:
        return not bound.beyond([time if each == stream else own for each, own in enumerate(times)])

    for scale, unit in UNITS if times[small] > 0 else ():
        if inside(large, times[large] // scale) or inside(small, times[small] * scale):
            return scaled(needs, large, small, scale, unit)
    later = times[bound.second] - times[bound.first]
    if inside(bound.second, times[bound.first] - later):
        return EXCHANGED.format(needs.names[bound.first], needs.names[bound.second])
    for moved in shifts(needs, later):
        # Of a wide window any times would be inside that are moved by the nearest one.
        narrow = bound.width < (_HOUR if abs(moved) < _DAY else _DAY)
        if narrow and inside(bound.second, times[bound.second] - moved):
            return shifted(needs, moved)
    return ""


EXCHANGED = "With {} and {} exchanged it would be inside: is their order in the window right?"


def shifts(needs: Needs, later: int) -> Iterator[int]:
    """Yield by how much times that are so much ``later`` than others may be moved: a time zone, some days."""
    if needs.kind is not TimeKind.INTEGRAL:
        zone, days = round(later / _QUARTER) * _QUARTER, round(later / _DAY) * _DAY
        if 0 < abs(zone) <= _MOST_HOURS * _HOUR:
            yield zone
        if days:
            yield days


def shifted(needs: Needs, moved: int) -> str:
    """Return what may be the reason where moved times would be inside a window."""
    why = "are both in one time zone" if abs(moved) <= _MOST_HOURS * _HOUR else "are both of one date"
    length = f"{abs(moved) // _DAY:,} d" if abs(moved) >= _DAY else human(abs(moved), needs.kind)
    return f"Moved by {length} it would be inside: {why}?"


def scaled(needs: Needs, large: int, small: int, scale: int, unit: str) -> str:
    """Return what may be the reason where times of another unit would be inside a window."""
    names = f"{needs.names[large]} is {scale:,} times that of {needs.names[small]}"
    return f"The time of {names}: is one of them in {unit}?"


def _condition(need: Need, told: Sequence[str | None]) -> str:
    if not need.sides:
        values = (
            f"{words} is {value or 'NULL'}" for (words, _), value in zip(need.values, told, strict=True)
        )
        return "; ".join([f"{need.text} is not true", *values])
    left, right = told
    if left is None or right is None:
        empty = [text for (_, text), value in zip(need.sides, told, strict=True) if value is None]
        return f"{need.text}: {' and '.join(empty)} is NULL, which equals nothing"
    return f"{need.text}: {left!r} is not {right!r}{near_miss(left, right)}"


def near_miss(left: str, right: str) -> str:
    """Return in what two texts differ that look alike."""
    if left == right:
        return ": both are written the same, but their types differ"
    if left.strip() == right.strip():
        return ": they differ only in spaces"
    if left.strip().lower() == right.strip().lower():
        return ": they differ only in upper and lower case"
    if written_number(left) is not None and written_number(left) == written_number(right):
        return ": both are one number, so compare them as numbers"
    return ""


def written_number(text: str) -> float | None:
    """Return the number that a text is, None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None
