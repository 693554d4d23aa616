"""The candidates of a choice as bars of their costs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wjoin.planner.explain.cost import TERMS, beyond, shared_line, unranked_line
from wjoin.planner.explain.document import CandidateEntry, Document
from wjoin.planner.explain.markup import Markup, picture, tag
from wjoin.planner.figures import seconds

CUT = 3.0
"""Bars are cut at so many times what the chosen plan costs beyond all others, at its whole cost at least."""

SHOWN = 12
"""Candidates in the first drawing; the others are in a second one that can be opened."""

_BARS, _BAR = 328, 14
_EDGE = 16
"""Room beside the bars, where the first and the last number of the scale reach."""


@dataclass(frozen=True)
class _Scale:
    """A linear scale of costs from 0 to ``end`` at the end of the bars, and the cost of the chosen plan."""

    end: float
    chosen: float

    def place(self, cost: float) -> float:
        return _EDGE + (_BARS * min(cost, self.end) / self.end if self.end else 0.0)

    def ticks(self) -> list[float]:
        """Return round costs along the scale."""
        if self.end <= 0:
            return []
        power = 10.0 ** math.floor(math.log10(self.end / 5))
        step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= self.end / 5 * (1 - 1e-9))
        return [step * place for place in range(math.floor(self.end / step + 1e-9) + 1)]


def chart(document: Document) -> list[Markup]:
    """Return the bars of all candidates on one linear scale, with a legend and notes."""
    found = document.ranked
    scale = _scale(found, document.shared)
    rows = [_row(each, scale, document, best=each is found[0]) for each in found]
    drawn = [_legend(document), _costs(rows[:SHOWN], scale)]
    if rest := rows[SHOWN:]:
        name = f"{len(rest)} more, all more expensive than those above"
        if min(each.cost for each in found[SHOWN:]) < max(each.cost for each in found[:SHOWN]):
            name = f"{len(rest)} more"
        drawn.append(tag("details", tag("summary", name), _costs(rest, scale)))
    return [*drawn, *_notes(document, scale), *_unranked(document)]


def _scale(candidates: Sequence[CandidateEntry], shared: Mapping[str, float]) -> _Scale:
    costs = [sum(beyond(each, shared).values()) for each in candidates]
    most = max(CUT * costs[0], candidates[0].cost)
    return _Scale(min(most, max(costs) * 1.02), costs[0])


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


def _costs(rows: Sequence[Markup], scale: _Scale) -> Markup:
    """Return some candidates below the numbers of the scale."""
    numbers = [
        tag("text", seconds(each), x=scale.place(each), y=12, text_anchor="middle", class_="tick")
        for each in scale.ticks()
    ]
    return tag("div", _strip("The scale of the costs", *numbers), *rows, class_="costs")


def _strip(title: str, *drawn: Markup) -> Markup:
    return picture(_BARS + 2 * _EDGE, _BAR + 6, title, *drawn)


def _row(candidate: CandidateEntry, scale: _Scale, document: Document, *, best: bool) -> Markup:
    """Return a candidate: its name, and below it the bar, the cost and why it was not chosen."""
    cost = sum(beyond(candidate, document.shared).values())
    lines = [(each, "grid") for each in scale.ticks()]
    marks = [
        tag("line", x1=scale.place(each), x2=scale.place(each), y1=0, y2=_BAR + 6, class_=class_)
        for each, class_ in (*lines, (scale.chosen, "chosen-cost"))
    ]
    bar = _strip(f"What {candidate.plan} costs, by its terms", *marks, *_bar(candidate, scale, document))
    content = (
        tag("div", f"{'✓ ' if best else ''}{candidate.words}", class_="name"),
        tag("div", bar, class_="bar"),
        tag("div", seconds(cost), class_="cost"),
        tag("div", "chosen" if best else _reason(candidate, document), class_="reason"),
    )
    return tag("div", *content, class_="candidate chosen" if best else "candidate", data_plan=candidate.plan)


def _reason(candidate: CandidateEntry, document: Document) -> str:
    chosen = document.candidates[0]
    names = terms(document.candidates)
    more = {each: candidate.terms.get(each, 0.0) - chosen.terms.get(each, 0.0) for each in names}
    name = max(more, key=lambda each: more[each], default="")
    dearer = candidate.cost * (1 - document.worth_a_change) > chosen.cost and "times" in candidate.lost
    return f"{candidate.lost}{f', most for {name}' if name and dearer else ''}"


def _bar(candidate: CandidateEntry, scale: _Scale, document: Document) -> Iterator[Markup]:
    before = 0.0
    more = beyond(candidate, document.shared)
    for name in terms([candidate]):
        start, end = scale.place(before), scale.place(before + more[name])
        before += more[name]
        hint = tag("title", f"{name}: {seconds(more[name])} CPU time per {document.unit} of event time")
        bar = {"x": start, "y": 3, "width": max(end - start, 0.0), "height": _BAR}
        yield tag("rect", hint, **bar, class_=f"term {_term_class(name)}", data_term=name)
    if before > scale.end:
        yield _break(_EDGE + _BARS - 16)


def _break(x: float) -> Markup:
    """Return the mark of a bar that goes on beyond the scale."""
    low, high = _BAR + 6, 0
    points = f"{x:.1f},{low} {x + 6:.1f},{high} {x + 11:.1f},{high} {x + 5:.1f},{low}"
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
