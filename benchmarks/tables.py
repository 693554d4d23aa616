"""Tables in plain text."""

from collections.abc import Sequence

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


def section_table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes of a section as a table; ratios are the first one's speed over the others'."""
    rows = [
        [
            "",
            "",
            "rows/s",
            "ratio",
            "batch s",
            "CPU s",
            "peak MB",
            "anon MB",
            "state rows",
            "state MB",
            "results",
        ]
    ]
    for each in outcomes:
        first = next(one for one in outcomes if one.when == each.when)
        rows.append(
            [
                *_title(each),
                f"{each.rows_per_second:,.0f}",
                f"{first.rows_per_second / each.rows_per_second:.2f}",
                f"{each.seconds:.3f}",
                f"{each.processor:.2f}",
                f"{each.peak / 1e6:,.0f}",
                f"{each.anonymous / 1e6:,.0f}",
                f"{each.state_rows:,}",
                f"{each.state_bytes / 1e6:,.1f}",
                f"{each.results:,}",
            ]
        )
    parts = [["", "", *outcomes[0].parts, "of it: state commit", "Python, all tasks"]]
    for each in outcomes:
        phases = ", ".join(f"{name} {value:.0f}" for name, value in sorted(each.phases.items()))
        values = [f"{value:.0f}" for value in (*each.parts.values(), each.state_commit)]
        parts.append([*_title(each), *values, phases or "-"])
    heading = "  where the milliseconds of a micro-batch go"
    return "\n".join([aligned(rows, left=2), "", heading, aligned(parts, left=2)])


def _title(each: Outcome) -> tuple[str, str]:
    stages = f", {each.load.stages} stages" if each.load.stages > 1 else ""
    return f"{SYSTEMS[each.system].title}, {each.load.window} s{stages}", each.when
