"""The files of a sink that a query has committed, for readers that know nothing of Spark."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from wjoin.grammar.errors import WJoinError

_ENTRY = re.compile(r"(\d+)(\.compact)?")
_VERSION = "v1"


class _Entry(NamedTuple):
    """A file of the log: that of one micro-batch, or a compact one of all up to it."""

    number: int
    compact: bool
    path: Path


def committed_files(folder: str | Path) -> list[str]:
    """Return the files of a local sink's folder whose micro-batches are complete, oldest first.

    Spark's file sink names in ``_spark_metadata`` what each micro-batch wrote, when it is complete:
    a file ``N`` for micro-batch N, or ``N.compact`` for all up to N. What else lies in the folder is
    being written, or was left by a crash. The list is empty while nothing is committed. Raises WJoinError
    WJ716 where a file of the log is missing or cannot be read.
    """
    log = Path(folder) / "_spark_metadata"
    found = [(each, _ENTRY.fullmatch(each.name)) for each in log.iterdir()] if log.is_dir() else []
    entries = sorted(_Entry(int(name[1]), name[2] is not None, path) for path, name in found if name)
    files: dict[str, None] = {}
    for entry in _needed(entries, log):
        for name, added in _changes(entry):
            if added:
                files[name] = None
            else:
                files.pop(name, None)
    return list(files)


def _needed(entries: Sequence[_Entry], log: Path) -> Sequence[_Entry]:
    """Return the newest compact entry and those after it. Raises WJoinError WJ716 where one is missing."""
    first = max((place for place, entry in enumerate(entries) if entry.compact), default=0)
    needed = entries[first:]
    begin = needed[0].number if needed and needed[0].compact else 0
    there = {entry.number for entry in needed}
    missing = [number for number in range(begin, max(there, default=-1)) if number not in there]
    if missing:
        numbers = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        batches = f"{'micro-batch' if len(missing) == 1 else 'micro-batches'} {numbers}"
        raise WJoinError("WJ716", f"the log {log} has no entry of {batches}")
    return needed


def _changes(entry: _Entry) -> Iterator[tuple[str, bool]]:
    """Yield the files that an entry names, and whether they are added or taken away.

    Raises WJoinError WJ716 for an entry that cannot be read.
    """
    try:
        version, *lines = entry.path.read_text("utf-8").split("\n")
        if version != _VERSION:
            raise ValueError(f"it begins with {version[:20]!r} in place of {_VERSION!r}")
        for line in filter(None, lines):
            told = json.loads(line)
            yield unquote(urlsplit(told["path"]).path), told["action"] == "add"
    except (OSError, ValueError, KeyError, TypeError) as error:
        of = f"micro-batches up to {entry.number}" if entry.compact else f"micro-batch {entry.number}"
        raise WJoinError("WJ716", f"{entry.path}, the entry of {of}, cannot be read: {error}") from error
