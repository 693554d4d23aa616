"""The window graph of one alternative as a drawing."""

import itertools
import math
from collections.abc import Mapping, Sequence

from wjoin.planner.explain.document import Document, StreamEntry
from wjoin.planner.explain.markup import Markup, fitted, join, picture, tag, text_width
from wjoin.planner.explain.page_layout import Box, arranged, ends
from wjoin.planner.explain.phrases import BoundOrigin, CompletedWindow, shown

LABELLED_STREAMS = 8
"""Streams up to which every edge has a label; beyond, only those that are given or tightened."""

LABELS = 28
"""Labels that a drawing has at most, as many as eight streams have edges."""

_SIZE = 12
_LINE = 15
_NODE_WIDTH = 170
_MARGIN = 10


def window_graph(document: Document, links: Sequence[CompletedWindow], title: str) -> Markup:
    """Return the drawing of the completed windows of one alternative."""
    sizes = {each.alias: _node_size(shown(each)) for each in document.streams}
    labelled = _labelled(links, len(sizes))
    labels = {link: _label_size(link) for link in labelled}
    places, spots = arranged(sizes, links, labels)
    boxes = [*places.values(), *spots.values()]
    left = min(each.x - each.width / 2 for each in boxes) - _MARGIN
    top = min(each.y - each.height / 2 for each in boxes) - _MARGIN
    right = max(each.x + each.width / 2 for each in boxes) + _MARGIN
    bottom = max(each.y + each.height / 2 for each in boxes) + _MARGIN
    drawn = [
        *(_edge(link, places) for link in links),
        *(_label(link, box) for link, box in spots.items()),
        *(_node(each, places[each.alias]) for each in document.streams),
    ]
    moved = tag("g", *drawn, transform=f"translate({-left:.1f} {-top:.1f})")
    return picture(right - left, bottom - top, title, moved, class_="windows")


def _node_size(name: str) -> tuple[float, float]:
    return min(_NODE_WIDTH, max(56, text_width(name, _SIZE + 1) + 24)), 34


def _labelled(links: Sequence[CompletedWindow], streams: int) -> list[CompletedWindow]:
    """Return the edges that have a label, those that were written first."""
    if streams <= LABELLED_STREAMS:
        return list(links)
    ranked = [
        link for link in links if link.kind is not BoundOrigin.DERIVED and link.kind is not BoundOrigin.FREE
    ]
    return ranked[:LABELS]


def _label_size(link: CompletedWindow) -> tuple[float, float]:
    width = max(text_width(each, _SIZE) for each in (link.interval, link.was))
    return width + 8, _LINE * (2 if link.was else 1) + 4


def _edge(link: CompletedWindow, places: Mapping[str, Box]) -> Markup:
    (x1, y1), (x2, y2) = ends(places[link.first], places[link.second])
    drawn = [tag("title", link.hint), tag("line", x1=x1, y1=y1, x2=x2, y2=y2)]
    if link.directed:
        drawn.append(_arrow(x1, y1, x2, y2))
    return tag("g", *drawn, class_=f"edge {_class(link.kind)}", data_edge=f"{link.first} {link.second}")


def _arrow(x1: float, y1: float, x2: float, y2: float) -> Markup:
    angle = math.atan2(y2 - y1, x2 - x1)
    wings = [(x2 - 11 * math.cos(angle + turn), y2 - 11 * math.sin(angle + turn)) for turn in (0.4, -0.4)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x2, y2), *wings])
    return tag("polygon", points=points)


def _class(kind: BoundOrigin) -> str:
    return kind.value.replace(" ", "-")


def _label(link: CompletedWindow, box: Box) -> Markup:
    lines = [(text, class_) for text, class_ in ((link.was, "was"), (link.interval, "interval")) if text]
    baseline = box.y - _LINE * (len(lines) - 1) / 2 + 4
    texts = [
        tag("text", text, class_=class_, x=box.x, y=baseline + _LINE * number, text_anchor="middle")
        for number, (text, class_) in enumerate(lines)
    ]
    return tag("g", tag("title", link.hint), _rectangle(box, 3), *texts, class_=f"label {_class(link.kind)}")


def _rectangle(box: Box, radius: float) -> Markup:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    return tag("rect", x=x, y=y, width=box.width, height=box.height, rx=radius)


def _node(stream: StreamEntry, box: Box) -> Markup:
    name = fitted(stream.alias, _SIZE + 1, box.width - 20, middle=True)
    more = fitted(shown(stream)[len(stream.alias) :], _SIZE, box.width - 30 - text_width(name, _SIZE + 1))
    words = [tag("tspan", name, class_="name"), *([" ", more] if len(more) > len("= …") else [])]
    text = tag("text", *words, x=box.x, y=box.y + 4, text_anchor="middle")
    class_ = "node" if stream.streaming else "node static"
    drawn = (tag("title", shown(stream)), _rectangle(box, box.height / 2), text)
    return tag("g", *drawn, class_=class_, data_stream=stream.alias)


def legend(links: Sequence[CompletedWindow]) -> Markup:
    """Return what the lines of the kinds that occur mean."""
    found = {link.kind for link in links}
    entries = [_legend_entry(kind) for kind in BoundOrigin if kind in found]
    if any(link.directed for link in links):
        words = "an arrow from A to B shows how much later B is than A; ± means either can be later"
        entries.append(tag("span", words, class_="key"))
    return tag("p", *itertools.chain.from_iterable((each, " ") for each in entries), class_="legend")


def _legend_entry(kind: BoundOrigin) -> Markup:
    line = tag("line", x1=0, y1=6, x2=34, y2=6)
    sample = picture(34, 12, kind.value, tag("g", line, class_=f"edge {_class(kind)}"))
    return tag("span", sample, " ", _MEANINGS[kind], class_="key")


_MEANINGS = {
    BoundOrigin.GIVEN: "given in the statement",
    BoundOrigin.TIGHTENED: join("tightened by the others; the given one is ", tag("s", "struck out")),
    BoundOrigin.PARTLY: "given on one side, derived on the other",
    BoundOrigin.DERIVED: "derived from the others",
    BoundOrigin.FREE: "without a bound",
}
