"""Tables in plain text."""

from collections.abc import Callable, Sequence
from typing import Any

from outcomes import Outcome
from systems import SYSTEMS


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return lines of cells as a table; the first ``left`` columns are set to the left."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    text = []
    for line in lines:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        text.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(text)


Cell = Callable[[Any, Any], str]
"""Makes a cell of an outcome, and of the first outcome of the table that ran as fresh as it."""


def outcome_lines(
    found: Sequence[Any], title: Callable[[Any], tuple[str, str]], columns: Sequence[tuple[str, Cell]]
) -> str:
    """Return a table with a line for each outcome: its title in two cells, then the columns."""
    lines = [["", "", *(head for head, _ in columns)]]
    for each in found:
        first = next(one for one in found if one.when == each.when)
        lines.append([*title(each), *(cell(each, first) for _, cell in columns)])
    return aligned(lines, left=2)


_COLUMNS: Sequence[tuple[str, Cell]] = (
    ("rows/s", lambda each, _: f"{each.rows_per_second:,.0f}"),
    ("ratio", lambda each, first: f"{first.rows_per_second / each.rows_per_second:.2f}"),
    ("batch s", lambda each, _: f"{each.seconds:.3f}"),
    ("CPU s", lambda each, _: f"{each.processor:.2f}"),
    ("peak MB", lambda each, _: f"{each.peak / 1e6:,.0f}"),
    ("anon MB", lambda each, _: f"{each.anonymous / 1e6:,.0f}"),
    ("state rows", lambda each, _: f"{each.state_rows:,}"),
    ("state MB", lambda each, _: f"{each.state_bytes / 1e6:,.1f}"),
    ("results", lambda each, _: f"{each.results:,}"),
)


def section_table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes of a section as a table; ratios are the first one's speed over the others'."""
    parts = [["", "", *outcomes[0].parts, "of it: state commit", "tasks, by layer"]]
    for each in outcomes:
        values = [f"{value:.0f}" for value in (*each.parts.values(), each.state_commit)]
        parts.append([*_title(each), *values, each.layers_text])
    heading = "  where the milliseconds of a micro-batch go"
    return "\n".join([outcome_lines(outcomes, _title, _COLUMNS), "", heading, aligned(parts, left=2)])


def _title(each: Outcome) -> tuple[str, str]:
    stages = f", {each.load.stages} stages" if each.load.stages > 1 else ""
    return f"{SYSTEMS[each.system].title}, {each.load.window} s{stages}", each.when
