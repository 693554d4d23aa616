"""The commits of a sink where they are written down: in Spark's log, and for longer in an index beside it.

Spark's log, ``_spark_metadata``, has an entry for each micro-batch, but forgets which was which when it
compacts them. The index, ``_wjoin_commits``, has files ``FIRST-LAST`` of the micro-batches from FIRST to
LAST, each written once, and files ``kept-N`` of what is to be kept, the newest of which counts. Commits
that are not in the index yet are read from Spark's log, with the same times: those at which their entries
were written.
"""

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession

from wjoin.grammar.errors import WJoinError
from wjoin.results.commits import Commit, KeptResults, Results, decoded, encoded, new_commits
from wjoin.sources.catalog import SinkDeclaration
from wjoin.sources.format_options import FILE_FORMATS, own_option
from wjoin.sources.sink_retention import Retention
from wjoin.spark.hadoop_files import Files
from wjoin.spark.process import resolved
from wjoin.spark.spark_failures import RAISED_BY_SPARK, first_line

LOG, INDEX = "_spark_metadata", "_wjoin_commits"

_ENTRY = re.compile(r"(\d+)(\.compact)?")
_SEGMENT = re.compile(r"(\d+)-(\d+)")
_KEPT = re.compile(r"kept-(\d+)")
_TRIES = 3
_READING = (*RAISED_BY_SPARK, OSError, ValueError, KeyError, TypeError)


@dataclass(frozen=True)
class _Logged:
    """An entry of Spark's log: its number, when it was written (milliseconds), and whether it is compact."""

    number: int
    written: int
    compact: bool

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.number}.compact" if self.compact else str(self.number)


@dataclass(frozen=True)
class CommitLog:
    """The commits of a sink whose folder this is; reading raises WJoinError WJ716 for what cannot be read."""

    files: Files
    folder: str

    @classmethod
    def of(cls, spark: SparkSession, sink: SinkDeclaration) -> "CommitLog | None":
        """Return the commits of a sink; None where it has no folder of files, or Spark Connect is between."""
        path = own_option(sink.options, "path")
        if not path or sink.provider.lower() not in FILE_FORMATS or not hasattr(spark, "_jsparkSession"):
            return None
        return cls(Files.of(spark), resolved(path).rstrip("/"))

    @property
    def kept(self) -> KeptResults | None:
        """What the sink keeps, None where nobody has said so."""
        numbers = self._numbers(_KEPT)
        if not numbers:
            return None
        text = self.files.read(f"{self.folder}/{INDEX}/kept-{numbers[-1][0]}")
        told = json.loads(text)
        return KeptResults(Retention(**told["times"]), told["schema"], told["since"])

    def keep(self, kept: KeptResults) -> None:
        """Write down what the sink keeps, where that is new."""
        before, numbers = self.kept, self._numbers(_KEPT)
        if before is None or (before.times, before.schema) != (kept.times, kept.schema):
            self._write(f"kept-{numbers[-1][0] + 1 if numbers else 0}", json.dumps(asdict(kept)))

    def keep_no_more(self) -> None:
        """Forget what the sink was to keep: it keeps all."""
        for (number,) in self._numbers(_KEPT):
            self.drop(f"kept-{number}")

    def results(self) -> Results | None:
        """Return the commits that are there, None where the sink keeps none by time."""
        for left in reversed(range(_TRIES)):
            try:
                return self._results()
            except _READING as error:
                # Files are compacted and removed meanwhile.
                if not left:
                    message = f"the commits of {self.folder} cannot be read: {first_line(error)}"
                    raise WJoinError("WJ716", message) from error
        return None

    def _results(self) -> Results | None:
        kept = self.kept
        if kept is None:
            return None
        read = [self.segment(name) for name in self.segments()]
        commits = [commit for found, _ in read for commit in found]
        tail = self.tail(commits[-1] if commits else None)
        return Results(kept, (*commits, *tail), read[0][1] if read else None)

    def segments(self) -> list[str]:
        """Return the names of the files of the index, oldest first."""
        return [f"{first}-{last}" for first, last in self._numbers(_SEGMENT)]

    def segment(self, name: str) -> tuple[list[Commit], int | None]:
        """Return the commits of a file of the index, and the time of the one before them."""
        return decoded(self.files.read(f"{self.folder}/{INDEX}/{name}"))

    def extend(self, commits: Sequence[Commit], gone: int | None) -> str:
        """Write commits that are not in the index yet; ``gone`` is the time of the one before them."""
        name = f"{commits[0].number}-{commits[-1].number}"
        self._write(name, encoded(commits, gone))
        return name

    def drop(self, name: str) -> None:
        """Remove a file of the index."""
        self.files.remove(f"{self.folder}/{INDEX}/{name}")

    def waiting(self, after: int) -> list[int]:
        """Return when the entries of Spark's log after micro-batch ``after`` were written."""
        return sorted(each.written for each in self._logged() if each.number > after)

    @property
    def last(self) -> int:
        """The number of the newest entry of Spark's log, -1 where there is none."""
        return max((each.number for each in self._logged()), default=-1)

    def named(self) -> set[str]:
        """Return the lines by which Spark's log names files now, to those who begin to read it."""
        logged = self._logged()
        compact = max((each.number for each in logged if each.compact), default=0)
        return {line for each in logged if each.number >= compact for line in self._lines(each)}

    def tail(self, last: Commit | None) -> list[Commit]:
        """Return the commits of Spark's log after the ``last`` of the index."""
        after = -1 if last is None else last.number
        logged = {each.number: each for each in self._logged()}
        newest = max(logged, default=-1)
        unknown = [number for number in range(after + 1, newest + 1) if _needed(logged, number) is None]
        if unknown:
            # The log has forgotten which micro-batch was which: the next compact entry has them all.
            begin = min(
                each.number for each in logged.values() if each.number >= unknown[-1] and each.compact
            )
            known = {
                line for name in self.segments() for commit in self.segment(name)[0] for line in commit.lines
            }
        else:
            begin, known = after + 1, self._lines_before(logged, after)
        entries = [logged[number] for number in range(begin, newest + 1)]
        return new_commits(self._read(entries), known, last, not unknown)

    def _lines_before(self, logged: dict[int, _Logged], after: int) -> set[str]:
        """Return the lines up to an entry that the first compact one after it repeats."""
        compact = min(
            (each.number for each in logged.values() if each.number > after and each.compact), default=0
        )
        needed = (_needed(logged, compact) or []) if compact else []
        return {line for number in needed if number <= after for line in self._lines(logged[number])}

    def _read(self, entries: Sequence[_Logged]) -> Iterator[tuple[int, int, bool, Sequence[str]]]:
        for each in entries:
            yield each.number, each.written, each.compact, self._lines(each)

    def _lines(self, entry: _Logged) -> Sequence[str]:
        version, *lines = self.files.read(f"{self.folder}/{LOG}/{entry.name}").split("\n")
        if version != "v1":
            raise ValueError(f"the entry {entry.name} begins with {version[:20]!r} in place of 'v1'")
        return lines

    def _logged(self) -> list[_Logged]:
        named = [
            (_ENTRY.fullmatch(name), at) for name, at in self.files.written(f"{self.folder}/{LOG}").items()
        ]
        return [_Logged(int(name[1]), at, name[2] is not None) for name, at in named if name]

    def _numbers(self, pattern: re.Pattern[str]) -> list[tuple[int, ...]]:
        """Return the numbers in the names of the index that a pattern matches, ascending."""
        names = self.files.written(f"{self.folder}/{INDEX}")
        return sorted(tuple(map(int, found.groups())) for found in map(pattern.fullmatch, names) if found)

    def _write(self, name: str, text: str) -> None:
        """Write a file of the index that is not there yet, whole or not at all."""
        partly = f"{self.folder}/{INDEX}/.{uuid.uuid4().hex}"
        self.files.write(partly, text)
        self.files.rename(partly, f"{self.folder}/{INDEX}/{name}")


def _needed(logged: dict[int, _Logged], number: int) -> list[int] | None:
    """Return the entries that say which lines of an entry are not its own; None where some are missing.

    An entry that is not compact has only its own.
    """
    entry = logged.get(number)
    if entry is None:
        return None
    if not entry.compact:
        return []
    needed = []
    for before in range(number - 1, -1, -1):
        if before not in logged:
            return None
        needed.append(before)
        if logged[before].compact:
            break
    return needed[::-1]


def last_logged(spark: SparkSession, sink: SinkDeclaration) -> int | None:
    """Return the last number in Spark's log of a sink of files, -1 for none; None of another sink."""
    log = CommitLog.of(spark, sink)
    return None if log is None else log.last
