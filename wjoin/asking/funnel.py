"""Where the rows of a window join are lost: how many are left after each thing that a result needs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from sqlglot import exp

from wjoin.asking.alternatives import Bound
from wjoin.asking.arrival import History, in_time, late_and_unread
from wjoin.asking.judged import EXCHANGED, UNITS, near_miss, scaled, shifted, shifts, written_number
from wjoin.asking.meant_rows import Reader
from wjoin.asking.needs import Kind, Need, Needs
from wjoin.asking.source_rows import BATCH
from wjoin.grammar.plurals import counted
from wjoin.planner.text.scope import quoted_if_needed
from wjoin.planner.text.trees import parse
from wjoin.planner.windows.lengths import human

_MOST_PAIRS = 200_000_000
"""Pairs without an equality that are compared at the most; of more, those of the first rows are."""

_VALUES = 1_000
"""Values of a key that are looked at for some that are nearly equal."""

_SHOWN_COLUMNS = 2
"""Columns of a filter whose values are told."""

_IN_TIME = "in time"
_LOST = "   ← no rows are left"
_MOST = ", which is most of them"
_DELAY = "EXPLAIN DELAY says what a longer delay keeps"
_NO_CHECKPOINT = (
    "Rows are left after all steps. Which ones a query drops as late, its checkpoint shows (--checkpoint)."
)


@dataclass(frozen=True)
class Meeting:
    """What a stream and those before it need of each other.

    ``keys``, then ``windows`` (alternatives of bounds), then other ``conditions``.
    """

    stream: int
    keys: tuple[Need, ...]
    windows: tuple[tuple[Bound, ...], ...]
    conditions: tuple[Need, ...]

    def steps(self, needs: Needs) -> Iterator[tuple[str, str]]:
        """Yield what is asked after the keys: in words, and as a Spark expression."""
        if self.windows:
            tests = (" AND ".join(needs.inside(each) for each in one) for one in self.windows)
            words = ("; ".join(map(needs.shown, one)) for one in self.windows)
            yield f"inside {' or '.join(words)}", " OR ".join(f"({each})" for each in tests)
        if self.conditions:
            words = (each.text for each in self.conditions)
            yield f"with {' AND '.join(words)}", " AND ".join(f"({each.test})" for each in self.conditions)


def funnel(history: History) -> Iterator[str]:
    """Yield what is left of the rows after each step, to the one after which nothing is left."""
    reader = history.reader
    needs = reader.needs
    left: list[DataFrame] = []
    yield "Rows"
    for number, name in enumerate(needs.names):
        filters = [
            each for each in needs.conditions if each.kind is Kind.FILTER and each.streams == (number,)
        ]
        lines, rows = _rows(history, number, filters)
        yield from (f"  {name}: {line}" for line in lines)
        if rows is None:
            return
        left.append(rows)
    for number in sorted(history.untold):
        name = needs.names[number]
        yield f"  Not judged: which rows of {name} the query has read, and in time: its source does not tell."
    for number in sorted(needs.idle - history.untold) if history.read else ():
        name = needs.names[number]
        yield f"  Not judged: which rows of {name} came behind the watermarks of others after it was silent."
    found, before = left[0], [0]
    for meeting in _meetings(reader):
        own = needs.names[meeting.stream]
        yield f"{', '.join(needs.names[each] for each in before)} and {own}"
        lines, made = _meet(reader, meeting, found, left[meeting.stream])
        yield from (f"  {line}" for line in lines)
        if made is None:
            return
        found, before = made, [*before, meeting.stream]
    told = any(BATCH in each.columns for each in reader.tables)
    if history.streaming and not (told or history.untold):
        yield _NO_CHECKPOINT
    unjudged = (*needs.unjudged, *(["windows of rows"] if needs.counts else []))
    if unjudged:
        yield f"Not judged: {'; '.join(unjudged)}."


def _rows(history: History, number: int, filters: Sequence[Need]) -> tuple[list[str], DataFrame | None]:
    """Return how many rows a stream has and keeps, and these; None where there are none."""
    reader = history.reader
    name, time = quoted_if_needed(reader.needs.names[number]), reader.needs.times[number]
    rows, (late, unread) = in_time(history, number), late_and_unread(history, number)
    labels = [f"with {each.text}" for each in filters] + ["with an event time"] * (time is not None)
    tests = [f"({each.test})" for each in filters] + [f"{time} IS NOT NULL"] * (time is not None)
    both = [" AND ".join(tests[: place + 1]) for place in range(len(tests))]
    listed = ", ".join(["count(*)", *(f"count_if({each})" for each in both)])
    (counts,) = reader.run(f"SELECT {listed} FROM {reader.alias(number)}", {number: rows}).collect()
    steps = [("", counts[0] + late + unread)]
    if BATCH in reader.tables[number].columns:
        steps += [("that the query has read", counts[0] + late), (_IN_TIME, counts[0])]
    steps += zip(labels, counts[1:], strict=True)
    lines: list[str] = []
    before = -1
    for label, count in steps:
        if count != before:
            lines.append(f"{counted(count, 'row')} {label}".rstrip() + _LOST * (count == 0))
        if label == _IN_TIME and late:
            most = _MOST if late > count else ""
            lines.append(f"  {counted(late, 'row')} came late, or too far in the future{most}: {_DELAY}")
        before = count
    if counts[-1] == 0:
        lost = sum(count > 0 for count in counts[1:])
        if counts[0] and lost < len(filters):
            lines += _seen(reader, number, filters[lost], rows)
        return lines, None
    where = f" WHERE {both[-1]}" if both else ""
    struct = f"SELECT struct({name}.*) AS {name} FROM {reader.alias(number)}{where}"
    return lines, reader.run(struct, {number: rows})


def _seen(reader: Reader, number: int, need: Need, rows: DataFrame) -> Iterator[str]:
    """Yield which values the columns have that a filter reads, where it is true of no row."""
    columns = dict.fromkeys(each.sql("spark") for each in parse(need.text).find_all(exp.Column))
    for column in [*columns][:_SHOWN_COLUMNS]:
        parts = ", ".join(f"{each}({column})" for each in ("min", "max", "mode"))
        (row,) = reader.run(f"SELECT {parts} FROM {reader.alias(number)}", {number: rows}).collect()
        least, most, often = (repr(each) if isinstance(each, str) else str(each) for each in row)
        if row[0] is None:
            yield f"{column} is NULL in all rows"
        elif least == most:
            yield f"{column} is {least} in all rows"
        else:
            yield f"{column} is from {least} to {most}, most often {often}"


def _meetings(reader: Reader) -> Iterator[Meeting]:
    """Yield the streams after the first, one that an equality or a window links to those before it first."""
    needs = reader.needs
    before, left = {0}, list(range(1, len(needs.names)))
    while left:
        made = [_meeting(reader, before, each) for each in left]
        linked = (each for each in made if each.keys or each.windows)
        taken = next(linked, made[0])
        yield taken
        before.add(taken.stream)
        left.remove(taken.stream)


def _meeting(reader: Reader, before: set[int], number: int) -> Meeting:
    needs, known = reader.needs, before | {number}
    own = [each for each in needs.conditions if number in each.streams and known.issuperset(each.streams)]
    windows = tuple(
        tuple(each for each in one if number in each.streams and known.issuperset(each.streams))
        for one in needs.alternatives
    )
    return Meeting(
        number,
        tuple(each for each in own if each.kind is Kind.KEY),
        windows if all(windows) else (),
        tuple(each for each in own if each.kind in (Kind.CONDITION, Kind.WINDOW)),
    )


def _meet(
    reader: Reader, meeting: Meeting, found: DataFrame, rows: DataFrame
) -> tuple[list[str], DataFrame | None]:
    """Return how many combinations are left with one more stream, and these; None where there are none."""
    left, right = found.count(), rows.count()
    if not meeting.keys and left * right > _MOST_PAIRS:
        most = int(_MOST_PAIRS**0.5)
        found, rows = found.limit(most), rows.limit(most)
    joined = "FROM {found} JOIN {rows} ON " + (
        " AND ".join(f"({each.test})" for each in meeting.keys) or "true"
    )
    steps = list(meeting.steps(reader.needs))
    tests = [" AND ".join(f"({test})" for _, test in steps[: place + 1]) for place in range(len(steps))]
    listed = ", ".join(["count(*)", *(f"count_if({each})" for each in tests)])
    (counts,) = reader.query(f"SELECT {listed} {joined}", found=found, rows=rows).collect()
    keys = " AND ".join(each.text for each in meeting.keys)
    labels = [f"with {keys}" if keys else f"of {left:,} and {right:,}", *(words for words, _ in steps)]
    lines = []
    for label, count in zip(labels, counts, strict=True):
        lines.append(f"{counted(count, 'combination')} {label}{_LOST * (count == 0)}")
        if count == 0:
            at_keys, at_windows = len(lines) == 1, len(lines) == 2 and meeting.windows
            if at_keys:
                lines += _nearly_equal(reader, meeting, found, rows)
            elif at_windows:
                lines += _nearest(reader, meeting, joined, found, rows)
            return lines, None
    where = f" WHERE {tests[-1]}" if tests else ""
    return lines, reader.query(f"SELECT * {joined}{where}", found=found, rows=rows)


def _nearest(
    reader: Reader, meeting: Meeting, joined: str, found: DataFrame, rows: DataFrame
) -> Iterator[str]:
    """Yield how far the nearest combination is outside of each window."""
    needs = reader.needs
    for bound in (each for one in meeting.windows for each in one):
        beyond, first, second = needs.beyond(bound), needs.times[bound.first], needs.times[bound.second]
        ends = [f"{end}({time})" for end in ("min", "max") for time in (first, second)]
        query = f"SELECT min({beyond}), {', '.join(ends)} {joined}"
        (nearest,) = reader.query(query, found=found, rows=rows).collect()
        if nearest[0]:
            yield f"the nearest is {human(nearest[0], needs.kind)} outside of {needs.shown(bound)}"
            guesses = dict(_guesses(needs, bound, *nearest[1:]))
            listed = ", ".join(f"count_if({test})" for test in guesses)
            (counts,) = reader.query(f"SELECT {listed} {joined}", found=found, rows=rows).collect()
            # Times of another unit may be moved into the window as well, by some number of days.
            likely = sorted(zip(counts, guesses.values(), strict=True), key=_likely)
            count, (_, hint) = likely[0]
            small = f"Is it too small? {human(nearest[0], needs.kind)} more would admit a combination."
            yield f"  {hint if count else small}"


def _likely(guess: tuple[int, tuple[bool, str]]) -> tuple[bool, bool, int]:
    count, (moved, _) = guess
    return count == 0, moved, -count


def _guesses(
    needs: Needs, bound: Bound, least: int, least_other: int, most: int, most_other: int
) -> Iterator[tuple[str, tuple[bool, str]]]:
    """Yield what times may mean instead: a Spark expression that is true where rows then are inside, and why.

    With why, whether times are moved. The others are the ends of the times of the two streams, the first
    stream's before the second one's.
    """
    first, second = str(needs.times[bound.first]), str(needs.times[bound.second])
    swapped = replace(bound, first=bound.second, second=bound.first)
    names = needs.names[bound.first], needs.names[bound.second]
    yield needs.inside(swapped), (False, EXCHANGED.format(*names))
    for scale, unit in UNITS:
        divided = f"({first}) div {scale}", f"({second}) div {scale}"
        ends = bound.first, bound.second
        yield needs.inside(bound, (divided[0], second)), (False, scaled(needs, *ends, scale, unit))
        yield needs.inside(bound, (first, divided[1])), (False, scaled(needs, *ends[::-1], scale, unit))
    for later in (least_other - least, most_other - most):
        for moved in shifts(needs, later):
            yield needs.inside(bound, (first, f"({second} - ({moved}))")), (True, shifted(needs, moved))


def _nearly_equal(reader: Reader, meeting: Meeting, found: DataFrame, rows: DataFrame) -> Iterator[str]:
    """Yield values of keys that are equal but for something, or else a value of each side."""
    for need in meeting.keys:
        values: list[list[str]] = [[], []]
        for stream, side in need.sides:
            own = stream == meeting.stream
            query = f"SELECT DISTINCT CAST({side} AS STRING) FROM {{frame}} LIMIT {_VALUES}"
            read = reader.query(query, frame=rows if own else found).collect()
            values[own] = [each[0] for each in read if each[0] is not None]
        alike = {_plain(each): each for each in values[1]}
        pairs = ((left, alike.get(_plain(left))) for left in values[0])
        near = ((left, right) for left, right in pairs if right is not None and near_miss(left, right))
        left, right = next(near, (values[0][:1], values[1][:1]))
        if left == right and len(meeting.keys) > 1:
            continue
        if isinstance(left, str) and isinstance(right, str):
            yield f"{need.text}: {left!r} is not {right!r}{near_miss(left, right)}."
        elif left and right:
            yield f"{need.text}: {left[0]!r} is a value on one side, {right[0]!r} on the other."


def _plain(value: str) -> object:
    """Return a value without what is easily mistaken: spaces, upper case, the form of a number."""
    number = written_number(value)
    return value.strip().lower() if number is None else number
