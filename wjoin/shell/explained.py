"""EXPLAIN on a terminal: lines no longer than it is wide, titles in bold."""

import re
import textwrap

from rich.cells import cell_len

from wjoin.grammar.shown import shown_lines
from wjoin.planner.explain.cost import candidates_text, cost_text
from wjoin.shell.paint import Paint
from wjoin.statements.explanation import Explanation

_SOURCE = re.compile(r"(\[[^\[\]]*\])$")
_LEAST = 40
"""Places below which lines are not wrapped: the terminal wraps them then."""


def explained(text: Explanation, width: int, paint: Paint) -> list[str]:
    """Return the lines of an explanation for a terminal of that width.

    The table of EXPLAIN COST becomes a list where it is too wide. Spark's own plans stay as they are.
    """
    plan, mark, sparks = str(text).partition("\n\nSpark plan\n")
    for document in text.described:
        costs = cost_text(document)
        if max(map(cell_len, costs.splitlines())) > width:
            plan = plan.replace(shown_lines(costs), shown_lines(candidates_text(document)))
    lines = [shown for line in plan.splitlines() for shown in _shown(line, width, paint)]
    if not text.described:
        lines = str(text).splitlines()
    return (
        [*lines, "", paint("Spark plan", "title"), *sparks.splitlines()] if mark and text.described else lines
    )


def _shown(line: str, width: int, paint: Paint) -> list[str]:
    """Return a line in parts that fit, the later ones indented below the first."""
    lines = [line]
    if cell_len(line) > width >= _LEAST:
        indent = len(line) - len(line.lstrip())
        lines = textwrap.wrap(
            line, width, subsequent_indent=" " * (indent + 4), break_long_words=False, break_on_hyphens=False
        )
    if line.startswith("warning: "):
        return [paint(each, "warning") for each in lines]
    if line[:1].isupper():
        return [paint(each, "title") for each in lines]
    return [_SOURCE.sub(lambda found: paint(found[1], "dim"), each) for each in lines]
