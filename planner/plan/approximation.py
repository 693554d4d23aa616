"""What is asked of an approximate join (DFT joins), and how large its summaries are."""

from collections.abc import Mapping
from dataclasses import dataclass

from wjoin.grammar.spans import Span

SIZE = 4096
"""Bytes of what a node tells of a window, where nothing says more."""

ROWS = 1 << 16
"""Rows that a window of a node is taken to have, where nothing is known of it."""


@dataclass(frozen=True)
class Approximation:
    """What is asked: the share of results that may be lost (``error``), or the visits of a row on average
    (``messages``); with neither, as many visits as log2 of the nodes (equation 9).

    ``size``: bytes of the summary of a window of a node; ``rows``: how many these have, about.
    """

    error: float | None = None
    messages: float | None = None
    size: int = SIZE
    rows: int = ROWS

    @property
    def words(self) -> str:
        """What is asked, as the hint says it; empty where only a plan is."""
        if self.error is not None:
            return f"error = {self.error:g}"
        return "" if self.messages is None else f"messages = {self.messages:g}"


@dataclass(frozen=True)
class LikelyJoin:
    """An approximate join of streams at sites, which may miss a share of the results of ``error``, or bring
    so many rows for each there is (``messages``).

    Rows that do not come are held for ``hold`` behind the latest row of their stream; ``delays`` are those
    that are declared, by stream; ``span``: where it is asked for, None for a setting.
    """

    error: float | None
    messages: float | None
    hold: int
    delays: Mapping[int, int]
    span: Span | None
