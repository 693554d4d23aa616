"""A running query as a picture in a cell: its state, small lines over time, its newest rows; no script in it.

The picture is replaced every second while the query runs. When nobody replaces it any more, for the kernel or
the page is another one, its style turns it gray after a while and shows since when there is no news.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from wjoin.measured.points import Point, merged
from wjoin.measured.totals import KEPT_SECONDS
from wjoin.notebook.html_tables import Table, preformatted
from wjoin.planner.explain.markup import Markup, picture, tag
from wjoin.planner.figures import figure, seconds

STALE_SECONDS = 12
"""After which time without news the picture is gray."""

_WIDTH, _HEIGHT = 210.0, 44.0
_MOST_POINTS = 120

STYLE = f"""
.wjoin-live {{ font: 13px/1.5 system-ui, "Segoe UI", sans-serif; color: inherit; margin: 4px 0; }}
.wjoin-live p {{ margin: 2px 0; overflow-wrap: anywhere; }}
.wjoin-live .head b {{ font-size: 15px; margin-right: 8px; }}
.wjoin-live .state {{ border: 1px solid currentColor; border-radius: 9px; padding: 0 8px; font-size: 12px; }}
.wjoin-live .running, .wjoin-live .idle, .wjoin-live .starting {{ color: #1a7f37; }}
.wjoin-live .failed {{ color: #cf222e; }}
.wjoin-live .note {{ opacity: .75; font-size: 12px; }}
.wjoin-live .lines {{ display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 6px 0; }}
.wjoin-live .line span {{ opacity: .75; font-size: 12px; }}
.wjoin-live .line b {{ float: right; font-variant-numeric: tabular-nums; }}
.wjoin-live .line {{ width: {_WIDTH:g}px; }}
.wjoin-live svg {{ display: block; overflow: visible; }}
.wjoin-live svg path {{ fill: none; stroke: #2f81d6; stroke-width: 1.5; stroke-linejoin: round; }}
.wjoin-live svg .floor {{ stroke: currentColor; stroke-width: 1; opacity: .3; }}
.wjoin-live .stale {{ visibility: hidden; height: 0; overflow: hidden; color: #b35900; }}
.wjoin-live.living .stale {{ animation: wjoin-told 0s linear {STALE_SECONDS}s forwards; }}
.wjoin-live.living .state {{ animation: wjoin-gone 0s linear {STALE_SECONDS}s forwards; }}
.wjoin-live.living .lines, .wjoin-live.living .done {{
  animation: wjoin-gray 0s linear {STALE_SECONDS}s forwards; }}
@keyframes wjoin-told {{ to {{ visibility: visible; height: auto; overflow: visible; }} }}
@keyframes wjoin-gone {{ to {{ color: inherit; text-decoration: line-through; opacity: .6; }} }}
@keyframes wjoin-gray {{ to {{ filter: grayscale(1); opacity: .5; }} }}
"""


@dataclass(frozen=True)
class Picture:
    """What a cell shows of a query.

    ``state`` is a word, ``at`` when that was so, ``living`` whether it may change. ``done`` is what it has
    done in a line, ``notes`` what else is to be said, ``error`` why it failed, ``rows`` those of a SELECT.
    """

    name: str
    state: str
    at: datetime
    living: bool
    done: str
    points: Sequence[Point] = ()
    notes: Sequence[str] = ()
    error: str | None = None
    rows: Table | None = None

    def text(self) -> str:
        """Return the picture for front ends that show text only."""
        lines = [f"{self.name}: {self.state} at {self.at:%H:%M:%S}; {self.done}", *self.notes]
        lines += [self.error] if self.error else []
        return "\n".join([*lines, *([self.rows.text()] if self.rows is not None else [])])

    def html(self) -> str:
        """Return the picture as a piece of HTML."""
        state = tag("span", self.state, class_=f"state {self.state}")
        when = tag("span", f" {self.at:%H:%M:%S}", class_="note")
        parts = [
            tag("p", tag("b", self.name), state, when, class_="head"),
            *([_stale(self.at)] if self.living else []),
            tag("p", self.done, class_="done"),
            *([tag("div", *_lines(self.points, self.at), class_="lines")] if self.points else []),
            *(tag("p", note, class_="note") for note in self.notes),
            *([preformatted(self.error)] if self.error else []),
            *([Markup(self.rows.html())] if self.rows is not None else []),
        ]
        kind = "wjoin-live living" if self.living else "wjoin-live"
        return tag("div", tag("style", Markup(STYLE)), *parts, class_=kind)


def _stale(at: datetime) -> Markup:
    told = (
        f"No update since {at:%Y-%m-%d %H:%M:%S}: the kernel has ended, or the page was reloaded. "
        "Run the cell again to see the query."
    )
    return tag("p", told, class_="stale")


def _lines(points: Sequence[Point], at: datetime) -> Iterator[Markup]:
    begins, ends = points[0].begins, max(at.timestamp(), points[-1].ends)
    over = f"the last {_span(ends - begins)}"
    for name, value, words in _LINES:
        told = [(each.begins, each.ends, value(each)) for each in _fewer(points) if each.ends > each.begins]
        steps = [(begin, end, height) for begin, end, height in told if height is not None]
        if steps:
            drawing = _drawing(steps, begins, ends, f"{name}, {over}")
            yield tag("div", tag("span", name), tag("b", words(steps[-1][2])), drawing, class_="line")
    yield tag("p", f"Lines: {over}.", class_="note", style="flex-basis: 100%")


_LINES: tuple[tuple[str, Callable[[Point], float | None], Callable[[float], str]], ...] = (
    ("rows a second", lambda each: each.rate(each.rows_read), figure),
    ("results a second", lambda each: each.rate(each.matches), figure),
    ("rows of state", lambda each: float(each.rows_of_state), figure),
    ("lag", lambda each: max(each.lag.values(), default=None), seconds),
)


def _fewer(points: Sequence[Point]) -> list[Point]:
    """Return points that follow each other put together to as many as a line can show."""
    each = -(-len(points) // _MOST_POINTS)
    groups = (merged(points[first : first + each]) for first in range(0, len(points), each))
    return [group for group in groups if group is not None]


def _drawing(steps: Sequence[tuple[float, float, float]], begins: float, ends: float, label: str) -> Markup:
    """Return a line of steps from zero to the greatest value."""
    most = max(0.0, *(value for _, _, value in steps)) or 1.0
    wide = max(ends - begins, 1e-3)

    def place(time: float, value: float) -> str:
        return f"{(time - begins) / wide * _WIDTH:.1f},{_HEIGHT - max(0.0, value) / most * (_HEIGHT - 3):.1f}"

    corners = [corner for begin, end, value in steps for corner in (place(begin, value), place(end, value))]
    floor = tag("path", d=f"M0,{_HEIGHT:g}H{_WIDTH:g}", class_="floor")
    return picture(_WIDTH, _HEIGHT, label, floor, tag("path", d="M" + "L".join(corners)), class_="spark")


def _span(length: float) -> str:
    if length < 120:
        return f"{max(1, round(length))} s"
    return "hour" if length > KEPT_SECONDS - 60 else f"{round(length / 60)} min"
