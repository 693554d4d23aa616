"""In which micro-batch a query has read a row, and whether it was late there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wjoin.asking.judged import Fault
from wjoin.asking.meant_rows import Reader
from wjoin.asking.needs import Kind
from wjoin.asking.read_log import EARLIER, NEVER, Read
from wjoin.asking.source_rows import BATCH, HIDDEN
from wjoin.asking.standing import Standing
from wjoin.planner.plan.ahead import greatest_time
from wjoin.planner.windows.lengths import human

_LAST = (1 << 31) - 1
"""A micro-batch after all others."""


@dataclass(frozen=True)
class Arrived:
    """Where a row comes from, in words, and the micro-batch that has read it, None for none."""

    place: str
    batch: int | None


def arrived_by(place: str | None, batch: int | None) -> Arrived | None:
    """Return what HIDDEN columns tell of a row, None where they tell nothing."""
    return None if place is None else Arrived(place, batch)


@dataclass(frozen=True)
class History:
    """What a query did with the rows of a block: when it read them, and which it dropped.

    ``streaming`` are the FROM items that are streams. ``standing``: how far the query has come, None where
    that is not known.
    """

    reader: Reader
    read: Read
    streaming: frozenset[int] = frozenset()
    standing: Standing | None = None

    @property
    def untold(self) -> frozenset[int]:
        """The streams of a query that has begun whose sources do not tell which micro-batch read a row."""
        told = (number for number, rows in enumerate(self.reader.tables) if BATCH in rows.columns)
        return self.streaming.difference(told) if self.read.clocks else frozenset()

    @cached_property
    def marks(self) -> list[dict[int, int | None]]:
        """By stream, and by micro-batch that read it, its watermark before; None where it had none.

        That after the last one stands at _LAST. Empty of a stream of whose rows nothing is known.
        """
        return [
            self._marks(stream) if BATCH in rows.columns else {}
            for stream, rows in enumerate(self.reader.tables)
        ]

    def _marks(self, stream: int) -> dict[int, int | None]:
        reader, needs = self.reader, self.reader.needs
        time, rows = needs.times[stream], reader.tables[stream]
        batches = [row[0] for row in rows.select(BATCH).distinct().collect() if row[0] is not None]
        limits = [(each, self.limit(stream, each)) for each in batches if each != NEVER]
        told = reader.asked.engine.rows(limits, f"{BATCH} INT, __wjoin_limit BIGINT")
        # A row too far ahead is dropped, and moves no watermark.
        newest = f"max({time}) FILTER (WHERE {time} <= __wjoin_limit)"
        query = f"SELECT {BATCH}, {newest} FROM {reader.alias(stream)} GROUP BY 1 ORDER BY 1"
        found: dict[int, int | None] = {}
        mark: int | None = None
        for batch, latest in reader.run(query, {stream: rows.join(told, BATCH)}).collect():
            found[batch] = mark
            if latest is not None:
                reached = latest - needs.delays[stream]
                mark = reached if mark is None else max(mark, reached)
        found[_LAST] = mark
        return found

    def limit(self, stream: int, batch: int) -> int:
        """Return the greatest event time that a stream may have in a micro-batch."""
        greatest, ahead = greatest_time(self.reader.needs.kind), self.reader.needs.ahead[stream]
        clock = self.read.clocks.get(batch)
        return greatest if ahead is None or clock is None else min(greatest, clock + ahead)

    def dropped(self, rows: Sequence[Arrived | None], times: Sequence[int | None]) -> dict[int, Fault]:
        """Return which of some rows, by the numbers of their streams, are not read yet or were dropped.

        ``rows``: one of each stream, None where nothing is known of it; ``times``: their event times.
        """
        found: dict[int, Fault] = {}
        for number, (row, time) in enumerate(zip(rows, times, strict=True)):
            if time is not None:
                text = self._dropped(number, row, time) if row is not None else self._unread(number, time)
                if text:
                    found[number] = Fault(Kind.ARRIVAL, text)
        return found

    def unknown(self, rows: Sequence[Arrived | None], times: Sequence[int | None]) -> Iterator[str]:
        """Yield what is not known of how some rows arrived; both as in ``dropped``."""
        for number, (name, row, time) in enumerate(zip(self.reader.needs.names, rows, times, strict=True)):
            if row is None and time is not None and self._may_be_late(number, time):
                yield f"whether {name} came late (nothing tells which micro-batch read it)"
            elif row is not None and row.batch == EARLIER:
                gone = "Spark no longer keeps the offsets of the micro-batch that read it"
                yield f"whether {name} came late ({gone})"
            elif row is not None and self._may_have_been_silent(number, row.batch, time):
                yield f"whether {name} was silent before, and came behind the watermarks of the others"

    def _may_have_been_silent(self, number: int, batch: int | None, time: int | None) -> bool:
        """Return whether the watermark of a silent stream may have gone on with others, past a row.

        It goes no further than the greatest of theirs before the micro-batch.
        """
        needs, mark = self.reader.needs, None if self.standing is None else self.standing.mark(number)
        if number not in needs.idle or batch is None or batch == NEVER or time is None:
            return False
        if mark is not None and time >= mark:
            return False
        if batch < 0:
            return True
        others = [self.marks[each] for each, own in enumerate(needs.times) if own and each != number]
        ends = [own[min(after for after in own if after >= batch)] for own in others if own]
        return not all(others) or any(end is not None and time < end for end in ends)

    def _unread(self, number: int, time: int) -> str:
        """Return that a row has not been read as far as its time tells, empty where it may have been."""
        standing, name = self.standing, self.reader.needs.names[number]
        if standing is None or number not in self.untold:
            return ""
        latest = standing.latest(number)
        if latest is None:
            return f"{name} has not been read yet: no row of {name} has"
        ahead = self.reader.needs.ahead[number] is not None or time > greatest_time(self.reader.needs.kind)
        what = (
            "was dropped as too far in the future, or has not been read yet"
            if ahead
            else "has not been read yet"
        )
        return (
            f"{name} {what}: the query has read none after {latest}" if standing.after(number, time) else ""
        )

    def _may_be_late(self, number: int, time: int) -> bool:
        """Return whether a row that has been read, of which nothing else is known, may have been late."""
        mark = None if self.standing is None else self.standing.mark(number)
        known = mark is not None and time >= mark
        return number in self.untold and not known and not self._unread(number, time)

    def _dropped(self, number: int, row: Arrived, time: int) -> str:
        needs, batch = self.reader.needs, row.batch
        name, ahead, delay = needs.names[number], needs.ahead[number], needs.delays[number]
        if batch is None:
            return f"{name} has not been read yet: no micro-batch has {row.place}"
        if batch == NEVER:
            return f"{name} is never read: the query began behind {row.place}"
        limit, clock = self.limit(number, batch), self.read.clocks.get(batch)
        if time > limit:
            text = f"{name} was dropped as too far in the future by {_named(batch)}"
            if ahead is not None and clock is not None:
                text += f": it is {human(time - clock, needs.kind)} ahead of its clock, and {name} may be "
                text += human(ahead, needs.kind)
            return text
        mark = self.marks[number][batch]
        if mark is not None and time < mark:
            return (
                f"{name} came late, by {human(mark - time, needs.kind)}: {_named(batch)} read it, and "
                f"rows more than {human(delay, needs.kind)} newer, the delay of {name}, had been read before"
            )
        return ""


def _named(batch: int) -> str:
    return f"micro-batch {batch}" if batch >= 0 else "an earlier micro-batch"


def in_time(history: History, stream: int) -> DataFrame:
    """Return the rows of a stream that a query has read in time; of whose rows nothing is known, all."""
    rows = history.reader.tables[stream]
    if BATCH not in rows.columns:
        return rows
    marked, there, lost = _marked(history, stream)
    return marked.filter(there & ~lost).select(*(each for each in rows.columns if each not in HIDDEN))


def late_and_unread(history: History, stream: int) -> tuple[int, int]:
    """Return how many rows of a stream were late or of the future, and how many are not read yet."""
    if BATCH not in history.reader.tables[stream].columns:
        return 0, 0
    marked, there, lost = _marked(history, stream)
    (counts,) = marked.select(F.count_if(there & lost), F.count_if(~there)).collect()
    return counts[0], counts[1]


def _marked(history: History, stream: int) -> tuple[DataFrame, Column, Column]:
    """Return the rows of a stream, and conditions: which have been read, and which of these were lost."""
    reader = history.reader
    known = [(batch, mark, history.limit(stream, batch)) for batch, mark in history.marks[stream].items()]
    told = reader.asked.engine.rows(known, f"{BATCH} INT, __wjoin_mark BIGINT, __wjoin_limit BIGINT")
    marked = reader.tables[stream].join(told, BATCH, "left").alias(reader.needs.names[stream])
    time = reader.needs.times[stream]
    lost = F.expr(f"coalesce({time} < __wjoin_mark, false) OR coalesce({time} > __wjoin_limit, false)")
    return marked, F.col("__wjoin_limit").isNotNull(), lost
