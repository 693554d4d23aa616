"""What a site knows of the rows that have left a stream's window: how late the latest of them was."""

import json
from dataclasses import dataclass
from pathlib import Path

from wjoin.grammar.plain import typed


@dataclass(frozen=True)
class Dropped:
    """Rows below ``below`` may have left the window.

    Those of them with numbers from ``known_from`` on had event times up to ``greatest``, None while no such
    row has left; of those before nothing is known. Rows later than any clock shows (wjoin.sites.far) do not
    count: nobody misses them.
    """

    known_from: int = 0
    below: int = 0
    greatest: int | None = None

    def and_also(self, below: int, greatest: int | None) -> "Dropped":
        """Return the same once more rows have left, with event times up to ``greatest``, None for none."""
        both = [each for each in (self.greatest, greatest) if each is not None]
        return Dropped(self.known_from, max(self.below, below), max(both, default=None))

    def only_before(self, start: int, low: int | None) -> bool:
        """Return whether all rows from ``start`` on that have left had an event time before ``low``."""
        if start < self.known_from:
            return False
        return self.greatest is None or (low is not None and self.greatest < low)


def load_dropped(path: Path, first: int) -> Dropped:
    """Return what a file tells, ``first`` being the first row kept.

    Where it does not tell of all rows that have left (there is none, or rows have left without it), nothing
    is known of rows below ``first``.
    """
    unknown = Dropped(first, first, None)
    try:
        found = typed(Dropped, json.loads(path.read_text("utf-8")))
        return found if found.below >= first else unknown
    except (OSError, ValueError):
        return unknown
