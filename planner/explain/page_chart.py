"""The candidates of a choice as bars of their costs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wjoin.planner.explain.cost import TERMS, beyond, shared_line, unranked_line
from wjoin.planner.explain.document import CandidateEntry, Document
from wjoin.planner.explain.markup import Markup, fitted, picture, tag
from wjoin.planner.figures import seconds

CUT = 3.0
"""Bars are cut at so many times what the chosen plan costs beyond all others, at its whole cost at least."""

SHOWN = 12
"""Candidates in the first drawing; the others are in a second one that can be opened."""

_SIZE = 12
_ROW = 42
_LINE = 21
"""The name of a candidate is above its bar, so that bars and costs are seen on a narrow screen, too."""

_BAR = 14
_AXIS = 34
_LEFT = 12
_BARS = 328
_COST = 96
_REASON = 370
_WIDTH = _LEFT + _BARS + _COST + _REASON


@dataclass(frozen=True)
class _Scale:
    """A linear scale of costs from 0 at ``left`` to ``end`` at the end of the bars."""

    left: float
    end: float
    chosen: float

    def place(self, cost: float) -> float:
        return self.left + _BARS * min(cost, self.end) / self.end if self.end else self.left


def chart(document: Document) -> list[Markup]:
    """Return the bars of all candidates on one linear scale, with a legend and notes."""
    found = document.ranked
    scale = _scale(found, document.shared)
    first, rest = found[:SHOWN], found[SHOWN:]
    drawn = [_legend(document), tag("div", _picture(first, scale, document), class_="scroll")]
    if rest:
        name = f"{len(rest)} more, all more expensive than those above"
        if min(each.cost for each in rest) < max(each.cost for each in first):
            name = f"{len(rest)} more"
        opened = _picture(rest, scale, document, len(first))
        drawn.append(tag("details", tag("summary", name), tag("div", opened, class_="scroll")))
    return [*drawn, *_notes(document, scale), *_unranked(document)]


def _scale(candidates: Sequence[CandidateEntry], shared: Mapping[str, float]) -> _Scale:
    costs = [sum(beyond(each, shared).values()) for each in candidates]
    most = max(CUT * costs[0], candidates[0].cost)
    return _Scale(_LEFT, min(most, max(costs) * 1.02), costs[0])


def terms(candidates: Sequence[CandidateEntry]) -> list[str]:
    """Return the terms that occur, in the order in which they are shown."""
    known = dict.fromkeys((*TERMS, *(name for each in candidates for name in each.terms)))
    return [name for name in known if any(name in each.terms for each in candidates)]


def _term_class(name: str) -> str:
    return f"term-{TERMS.index(name)}" if name in TERMS else "term-other"


def _legend(document: Document) -> Markup:
    keys = []
    for name in terms(document.candidates):
        sample = picture(12, 12, name, tag("rect", width=12, height=12, rx=2, class_=_term_class(name)))
        keys += [tag("span", sample, " ", name, class_="key"), " "]
    return tag("p", *keys, class_="legend")


def _picture(
    candidates: Sequence[CandidateEntry], scale: _Scale, document: Document, before: int = 0
) -> Markup:
    height = _AXIS + _ROW * len(candidates) + 6
    rows = [
        each
        for place, candidate in enumerate(candidates)
        for each in _row(candidate, _AXIS + _ROW * place, scale, document, place + before == 0)
    ]
    x = scale.place(scale.chosen)
    mark = tag("line", x1=x, x2=x, y1=_AXIS - 4, y2=height - 4, class_="chosen-cost")
    title = "Costs of the candidates, stacked by their terms"
    return picture(_WIDTH, height, title, *_axis(scale, height), mark, *rows, class_="costs")


def _axis(scale: _Scale, height: float) -> Iterator[Markup]:
    step = _tick(scale.end)
    count = math.floor(scale.end / step + 1e-9) if step else 0
    for place in range(count + 1):
        x = scale.place(step * place)
        yield tag("line", x1=x, x2=x, y1=_AXIS - 6, y2=height - 4, class_="grid")
        yield tag("text", seconds(step * place), x=x, y=_AXIS - 12, text_anchor="middle", class_="tick")


def _tick(end: float) -> float:
    """Return a round distance of ticks."""
    if end <= 0:
        return 0.0
    rough = end / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough * (1 - 1e-9))


def _row(
    candidate: CandidateEntry, top: float, scale: _Scale, document: Document, best: bool
) -> Iterator[Markup]:
    cost = sum(beyond(candidate, document.shared).values())
    bar, end = top + _LINE, scale.left + _BARS + _COST
    middle = bar + _BAR / 2 + 4
    content = [
        *([tag("rect", x=0, y=top + 1, width=_WIDTH, height=_ROW - 2, rx=4, class_="mark")] if best else []),
        tag("text", _named(candidate, best), x=6, y=top + _LINE - 5, class_="name"),
        tag("title", candidate.words),
        *_bar(candidate, bar, scale, document),
        tag("text", seconds(cost), x=end - 16, y=middle, text_anchor="end", class_="cost"),
        tag("text", _reason(candidate, document, best), x=end, y=middle, class_="reason"),
    ]
    yield tag("g", *content, class_="candidate chosen" if best else "candidate", data_plan=candidate.plan)


def _named(candidate: CandidateEntry, best: bool) -> str:
    return ("✓ " if best else "") + fitted(candidate.words, _SIZE + 1, _WIDTH - 30)


def _reason(candidate: CandidateEntry, document: Document, best: bool) -> str:
    if best:
        return "chosen"
    chosen = document.candidates[0]
    names = terms(document.candidates)
    more = {each: candidate.terms.get(each, 0.0) - chosen.terms.get(each, 0.0) for each in names}
    name = max(more, key=lambda each: more[each], default="")
    dearer = candidate.cost * (1 - document.worth_a_change) > chosen.cost and "times" in candidate.lost
    cause = f", most for {name}" if name and dearer else ""
    return fitted(f"{candidate.lost}{cause}", _SIZE, _REASON - 4)


def _bar(candidate: CandidateEntry, top: float, scale: _Scale, document: Document) -> Iterator[Markup]:
    before = 0.0
    more = beyond(candidate, document.shared)
    for name in terms([candidate]):
        start, end = scale.place(before), scale.place(before + more[name])
        before += more[name]
        hint = tag("title", f"{name}: {seconds(more[name])} CPU time per {document.unit} of event time")
        bar = {"x": start, "y": top, "width": max(end - start, 0.0), "height": _BAR}
        yield tag("rect", hint, **bar, class_=f"term {_term_class(name)}", data_term=name)
    if before > scale.end:
        yield _break(scale.left + _BARS - 16, top)


def _break(x: float, top: float) -> Markup:
    """Return the mark of a bar that goes on beyond the scale."""
    low, high = top + _BAR + 3, top - 3
    points = f"{x:.1f},{low:.1f} {x + 6:.1f},{high:.1f} {x + 11:.1f},{high:.1f} {x + 5:.1f},{low:.1f}"
    edges = [tag("line", x1=x + d, y1=low, x2=x + d + 6, y2=high) for d in (0, 5)]
    return tag("g", tag("polygon", points=points), *edges, class_="break")


def _notes(document: Document, scale: _Scale) -> Iterator[Markup]:
    found, shared = document.ranked, document.shared
    texts = [f"CPU time per {document.unit} of event time, on a linear scale."]
    if shared:
        texts.append(f"The bars leave out what every plan costs; {shared_line(shared)}.")
    if any(sum(beyond(each, shared).values()) > scale.end for each in found):
        texts.append("Broken bars are cut off; the number is the full cost.")
    if any(each.cost * (1 - document.worth_a_change) <= found[0].cost for each in found[1:]):
        least = f"at least {document.worth_a_change:.0%}".replace("%", "\u00a0%")
        texts.append(f"A plan must be {least} cheaper to replace a simpler one.")
    yield tag("p", " ".join(texts), class_="note")


def _unranked(document: Document) -> Iterator[Markup]:
    """Yield the plans that are not taken by their cost."""
    for each in document.unranked:
        yield tag("p", f"{unranked_line(each)}.", class_="note unranked", data_plan=each.plan)
