"""Curves as text, for terminals and logs."""

import itertools
import statistics
from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LABEL = 10


def plot(title: str, values: Sequence[float], minutes: float, *, width: int = 72, height: int = 6) -> str:
    """Return the values, which are evenly spread over so many minutes, as columns above 0.

    A column is the median of the values that fall into it.
    """
    columns = _columns(values, width)
    top = max(columns, default=0.0) or 1.0
    lines = [title]
    for row in reversed(range(height)):
        filled = (columns[place] / top * height - row for place in range(len(columns)))
        cells = "".join(_EIGHTHS[round(8 * min(1.0, max(0.0, part)))] for part in filled)
        label = f"{top:,.1f}" if row == height - 1 else "0" if row == 0 else ""
        lines.append(f"{label:>{_LABEL}} │{cells}")
    lines.append(" " * _LABEL + " └" + "─" * len(columns))
    lines.append(" " * (_LABEL + 2) + "0" + f"{minutes:,.0f} min".rjust(len(columns) - 1))
    return "\n".join(lines)


def _columns(values: Sequence[float], width: int) -> list[float]:
    count = min(width, len(values))
    bounds = [len(values) * place // count for place in range(count + 1)] if count else []
    return [statistics.median(values[low:high]) for low, high in itertools.pairwise(bounds)]
