"""The micro-batches that a sink of files has committed, and which of them are kept: plain values.

A time is in milliseconds since 1970, as file systems have them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from urllib.parse import unquote

from wjoin.sources.sink_retention import Retention

_FORMAT = 1


@dataclass(frozen=True)
class Commit:
    """What one micro-batch has committed: ``lines`` of Spark's log, one a file.

    ``compacted``: its entry of Spark's log is a compact one. Not ``whole``: it stands for several
    micro-batches, the last of which is ``number``, and only of that one the time is known.
    """

    number: int
    at: int
    lines: tuple[str, ...]
    compacted: bool = False
    whole: bool = True


@dataclass(frozen=True)
class KeptResults:
    """What a sink keeps of its results: how long, and of which columns.

    ``schema`` is Spark's, of the rows, as JSON; ``since`` is when this was written down.
    """

    times: Retention
    schema: str
    since: int


@dataclass(frozen=True)
class Results:
    """The commits of a sink that are there, oldest first; ``gone`` is the time of the one before them."""

    kept: KeptResults
    commits: tuple[Commit, ...]
    gone: int | None

    @property
    def retained(self) -> Sequence[Commit]:
        """The commits within the time to keep, which is counted back from the newest one."""
        begin = self.commits[-1].at - self.kept.times.time if self.commits else 0
        return [each for each in self.commits if each.at >= begin]

    @property
    def complete_after(self) -> int | None:
        """The time after which every commit is retained, None where no commit has gone."""
        dropped = self.commits[: len(self.commits) - len(self.retained)]
        unknown = [each.at for each in self.retained if not each.whole]
        gone = [self.gone] if self.gone is not None else []
        return max([*gone, *(each.at for each in dropped), *unknown], default=None)

    def selected(self, first: int | None, last: int | None) -> list[Commit] | None:
        """Return the retained commits between two times (None: no bound), in microseconds.

        None where some of them are gone, or all that was retained as of ``last``.
        """
        after = self.complete_after
        asked = first if first is not None else last
        if asked is not None and after is not None and asked <= after * 1000 + 999:
            return None
        low, high = (-(2**63) if first is None else first), (2**63 if last is None else last)
        return [each for each in self.retained if low <= each.at * 1000 <= high]


def path_of(line: str) -> str:
    """Return the path of the file that a line of Spark's log names."""
    return unquote(str(json.loads(line)["path"]))


def forgotten_before(compacted: Iterable[int], kept: KeptResults, now: int) -> int:
    """Return the time before which no commit can be needed: Spark's log has forgotten it for the grace time.

    ``compacted`` are the times of the log's compact entries. One of them must have been written long enough
    after a commit to leave it out, and long enough ago that who has read the log before it is done.
    """
    settled = [at for at in compacted if kept.since <= at <= now - kept.times.grace]
    return max(settled, default=0) - kept.times.logged - 1000


def new_commits(
    entries: Iterable[tuple[int, int, bool, Sequence[str]]], known: set[str], last: Commit | None, whole: bool
) -> list[Commit]:
    """Return the commits of entries of Spark's log: number, time of writing, whether compact, lines.

    ``known`` are the lines of earlier entries, which a compact one repeats. Commits are in order of time even
    where the clock was put back. Not ``whole``: the first entry is of several micro-batches.
    """
    found: list[Commit] = []
    for number, written, compacted, lines in entries:
        before = found[-1] if found else last
        at = written if before is None else max(written, before.at + 1)
        new = tuple(line for line in lines if line not in known)
        known.update(new)
        found.append(Commit(number, at, new, compacted, whole or bool(found)))
    return found


def encoded(commits: Sequence[Commit], gone: int | None) -> str:
    """Return commits as the text of a file; ``gone`` is the time of the one before them."""
    head = {"format": _FORMAT, "gone": gone}
    return "\n".join(json.dumps(each) for each in [head, *map(asdict, commits)])


def decoded(text: str) -> tuple[list[Commit], int | None]:
    """Return what ``encoded`` was given. Raises ValueError for another text."""
    head, *rest = map(json.loads, text.split("\n"))
    if head.get("format") != _FORMAT:
        raise ValueError(f"its format is {head.get('format')}, not {_FORMAT}")
    return [Commit(**{**each, "lines": tuple(each["lines"])}) for each in rest], head["gone"]
