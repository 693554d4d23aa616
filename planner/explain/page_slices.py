"""The slices of a stage as a drawing: which worker has each of them, and where the rows of one go."""

from collections.abc import Iterator, Sequence

from wjoin.planner.explain.document import DealtEntry, LyingEntry
from wjoin.planner.explain.markup import Markup, fitted, picture, tag, text_width
from wjoin.planner.explain.phrases import Lying

_SIZE = 12
_CELL = 46
_ROW = 26
_BAR = 22
_MARGIN = 8
_MOST_LEFT = 200
_RADIUS = 7


def slices_picture(dealt: DealtEntry, title: str) -> Markup:
    """Return the drawing: a bar of time cut into slices, and a table of rows by workers below it."""
    names = ["slices, by worker", *(f"a row of {' '.join(each.members)}" for each in dealt.rows)]
    left = _MARGIN + min(_MOST_LEFT, max(text_width(each, _SIZE) for each in names)) + 14
    workers = len(dealt.rows[0].workers)
    width = left + _CELL * max(len(dealt.slices) + 1, workers + 1) + _MARGIN
    table = _MARGIN + _BAR + 3 * _SIZE
    texts = [_text(fitted(names[0], _SIZE, _MOST_LEFT), _MARGIN, _MARGIN + 15)]
    texts += list(_heads(left, table, workers, more=dealt.more))
    for number, (name, each) in enumerate(zip(names[1:], dealt.rows, strict=True), start=1):
        y = table + _ROW * number
        texts.append(_text(fitted(name, _SIZE, _MOST_LEFT), _MARGIN, y + 4))
        texts += list(_lying(each, left, y))
    height = table + _ROW * len(dealt.rows) + 16 + _MARGIN
    return picture(width, height, title, *_bar(dealt, left), *texts, class_="slices")


def slices_legend(dealt: DealtEntry) -> Markup:
    """Return what the signs that occur mean."""
    found = {word for each in dealt.rows for word in each.workers}
    words: list[str] = [f"a row near the end of slice {dealt.place}:", " "]
    for each in Lying:
        if each.value in found:
            sign = picture(16, 16, each.value, _sign(each, 8, 8))
            words += [tag("span", sign, f" a worker {each.value}", class_="key"), " "]
    return tag("p", *words, class_="legend")


def _bar(dealt: DealtEntry, left: float) -> Iterator[Markup]:
    """Yield the slices as boxes that name the workers which keep their rows."""
    for number, each in enumerate(dealt.slices):
        x = left + _CELL * number
        name = fitted(", ".join(map(str, each)), _SIZE, _CELL - 6)
        hint = tag("title", f"slice {number + 1} is stored on {name}")
        frame = tag("rect", x=x, y=_MARGIN, width=_CELL, height=_BAR)
        label = _text(name, x + _CELL / 2, _MARGIN + 15, anchor="middle")
        drawn = "slice own" if number + 1 == dealt.place else "slice"
        yield tag("g", hint, frame, label, class_=drawn)
    yield _text("…", left + _CELL * len(dealt.slices) + 8, _MARGIN + 15)


def _heads(left: float, top: float, workers: int, *, more: bool) -> Iterator[Markup]:
    yield _text("worker", _MARGIN, top + 4, class_="tick")
    heads: Sequence[str] = [*(str(number + 1) for number in range(workers)), *(["…"] if more else [])]
    for number, each in enumerate(heads):
        yield _text(each, left + _CELL * (number + 0.5), top + 4, anchor="middle", class_="tick")


def _lying(each: LyingEntry, left: float, y: float) -> Iterator[Markup]:
    for number, word in enumerate(each.workers):
        if word:
            sign = _sign(Lying(word), left + _CELL * (number + 0.5), y)
            yield tag("g", tag("title", f"worker {number + 1}: {word}"), sign)


def _sign(lying: Lying, x: float, y: float) -> Markup:
    return tag("circle", cx=x, cy=y, r=_RADIUS, class_=lying.name.lower())


def _text(text: str, x: float, y: float, anchor: str = "start", class_: str = "") -> Markup:
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=class_ or None)
