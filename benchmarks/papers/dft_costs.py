"""Table 1: what it costs to keep each summary up to date, to tell it and to ask it, in processor time."""

import time
from collections.abc import Callable

import numpy as np
from dft_loads import SETS
from report import Verdict, number
from s2j_parts import Judged, Part, table, told

from wjoin.parts.summaries.dft import cells_of, length
from wjoin.parts.summaries.registry import SUMMARIES
from wjoin.parts.summaries.summary import Form

_BATCH = 1000
KAPPA = 256
_ANEW = "DFT, all anew"


def costs(*, quick: bool) -> Part:
    """Measure microseconds a row, where rows come by the thousand, and milliseconds for a view."""
    windows = (10_000,) if quick else (80_000, 250_000, 500_000, 1_000_000)
    update: dict[str, list[float]] = {_ANEW: []}
    tell: dict[str, list[float]] = {}
    ask: dict[str, list[float]] = {}
    for window in windows:
        rows = SETS["ZIPF"].draw(np.random.default_rng(1), 0, 8, window + _BATCH)
        old, new, gone = rows[:window], rows[window:], rows[:_BATCH]
        form = Form(8 * window // KAPPA, 0, window)
        counts = np.bincount(cells_of(form, old), minlength=length(form)).astype(np.float64)
        update[_ANEW].append(1e6 * _seconds(lambda: np.fft.rfft(counts)) / _BATCH)  # noqa: B023 (it is called at once)
        for kind, summary_type in SUMMARIES.items():
            if kind == "base":
                continue
            summary = summary_type.empty(form).add(old)
            view = summary.view(form, summary.to_bytes())
            seconds = _seconds(lambda: summary.add(new).remove(gone))  # noqa: B023 (it is called at once)
            update.setdefault(kind.upper(), []).append(1e6 * seconds / _BATCH)
            tell.setdefault(kind.upper(), []).append(1e3 * _seconds(summary.to_bytes))
            seconds = _seconds(lambda: view.expected(new, view))  # noqa: B023 (it is called at once)
            ask.setdefault(kind.upper(), []).append(1e6 * seconds / _BATCH)
        told(f"W = {window:,}")
    tables = [
        table("costs", "Table 1: µs a row that comes while another leaves", "W", windows, update),
        table("tell", "Milliseconds for a view of a whole window", "W", windows, tell),
        table("ask", "µs to ask a view for a row", "W", windows, ask),
    ]
    ratios = [dft / skch for dft, skch in zip(update["DFT"], update["SKCH"], strict=True)]
    words = f"DFT to SKCH {', '.join(map(number, ratios))}"
    text = "incremental DFT costs about what AGMS costs (at most twice)"
    return Part(tables, [], [Judged("table 1", text, Verdict(max(ratios) < 2, words))])


def _seconds(work: Callable[[], object]) -> float:
    """Return the least processor time of some runs."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)
