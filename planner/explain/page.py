"""Documents as a page: HTML and SVG in one piece, without scripts or anything from elsewhere."""

from collections.abc import Iterator, Mapping, Sequence

from wjoin.grammar.plurals import counted, listed
from wjoin.planner.explain.document import (
    Document,
    EstimateEntry,
    ShipmentEntry,
    StatisticsEntry,
    StreamEntry,
)
from wjoin.planner.explain.markup import Markup, join, tag
from wjoin.planner.explain.overload import overload_lines
from wjoin.planner.explain.page_chart import chart
from wjoin.planner.explain.page_graph import legend, window_graph
from wjoin.planner.explain.page_plan import plan_picture
from wjoin.planner.explain.page_slices import slices_legend, slices_picture
from wjoin.planner.explain.page_style import AROUND, ROOT, STYLE
from wjoin.planner.explain.phrases import CompletedWindow, alternatives, shown, signed, warnings
from wjoin.planner.figures import figure, seconds, size

OPEN_WINDOWS = 6
"""Windows up to which their table is open from the start."""

DRAWN_ALTERNATIVES = 6
"""Alternatives that are drawn from the start; the others can be opened."""


def page(documents: Sequence[Document], title: str) -> str:
    """Return a page that shows the plans of a statement's W-joins."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(AROUND)),
    )
    body = tag("body", _content(documents, tag("h1", title)))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def fragment(documents: Sequence[Document]) -> str:
    """Return the same to stand inside another page, such as the cell of a notebook."""
    return str(_content(documents, Markup("")))


def explained(documents: Sequence[Document]) -> Markup:
    """Return the same without its style and the drawings of the plans, to stand below those of ``drawn``."""
    return join(*_joins(documents, drawn=False))


def drawn(documents: Mapping[str, Document]) -> Markup:
    """Return the drawings of plans with places for the numbers of the running query (``plan_picture``).

    Each is under its own name, with which the names of these places begin.
    """
    return join(
        *(
            _named(tag("figure", plan_picture(each, live)), number, len(documents))
            for number, (live, each) in enumerate(documents.items(), start=1)
        )
    )


def _named(drawing: Markup, number: int, count: int) -> Markup:
    return join(tag("h3", f"Window join {number} of {count}"), drawing) if count > 1 else drawing


def _content(documents: Sequence[Document], heading: Markup) -> Markup:
    style = tag("style", Markup(f"\n{STYLE}\n"))
    return tag("div", style, heading, *_joins(documents, drawn=True), class_=ROOT)


def _joins(documents: Sequence[Document], *, drawn: bool) -> list[Markup]:
    count = len(documents)
    return [_join(each, number, count, drawn=drawn) for number, each in enumerate(documents, start=1)]


def _join(document: Document, number: int, count: int, *, drawn: bool) -> Markup:
    title = [tag("h2", f"Window join {number} of {count}")] if count > 1 else []
    body = [*_summary(document), *_windows(document), *_plan(document, drawn=drawn)]
    more = [*_sites(document), *_overload(document), *_statistics(document)]
    return tag("section", *title, *body, *more, class_="join")


def _summary(document: Document) -> Iterator[Markup]:
    yield tag("p", " ".join(_sentences(document)), class_="lead")
    yield tag("div", *_tiles(document), class_="tiles")
    yield from (tag("p", text, class_="warning") for text in _warnings(document))


def _sentences(document: Document) -> Iterator[str]:
    found = len(alternatives(document))
    windows = "the windows below" if found == 1 else f"one of the {found} alternatives below"
    keys = [" = ".join(each.parts) for each in document.equality_classes]
    where = f" where {listed(keys)}" if keys else ""
    names = listed([shown(each) for each in document.streams])
    yield f"Joins {names}{where}, for rows whose times are within {windows}."
    yield from _choice(document)


def _choice(document: Document) -> Iterator[str]:
    found = document.ranked
    if document.unknown:
        yield f"No statistics for {listed(document.unknown)}; the planner used defaults."
    if len(found) == 1:
        yield f"Only one plan applies: {found[0].words}."
        return
    yield f"The planner chose “{found[0].words}” from {len(found)} plans."
    yield f"The runner-up is “{found[1].words}”: {found[1].lost}."


def _tiles(document: Document) -> Iterator[Markup]:
    chosen, unit = document.chosen, document.unit
    yield _tile(chosen.plan, "chosen plan", "tile best")
    yield _tile(seconds(chosen.cost), f"CPU time per {unit} of event time")
    yield _tile(figure(chosen.results), f"results per {unit}")
    yield _tile(figure(chosen.comparisons), f"comparisons per {unit}")
    yield _tile(size(chosen.shuffled_bytes), f"shuffled per {unit}")
    if document.streaming:
        yield _tile(figure(chosen.state_rows), f"rows of state, {size(chosen.state_bytes)}")


def _tile(value: str, label: str, class_: str = "tile") -> Markup:
    return tag("div", tag("b", value), tag("span", label), class_=class_)


def _warnings(document: Document) -> Iterator[str]:
    yield from (f"{text[0].upper()}{text[1:]}." for text in warnings(document))
    yield from dict.fromkeys(stage.warning for stage in document.stages if stage.warning)
    if count := document.constraints.contradictory_alternatives:
        yield f"Left out: {counted(count, 'alternative')} that no rows can satisfy."


def _windows(document: Document) -> Iterator[Markup]:
    found = alternatives(document)
    links = [link for each in found for link in each]
    yield tag("h3", "Windows")
    yield legend(links)
    drawn = [_alternative(document, each, n, len(found)) for n, each in enumerate(found, start=1)]
    yield tag("div", *drawn[:DRAWN_ALTERNATIVES], class_="alternatives")
    if rest := drawn[DRAWN_ALTERNATIVES:]:
        opened = tag("div", *rest, class_="alternatives")
        yield tag("details", tag("summary", f"{counted(len(rest), 'more alternative')}"), opened)
    state = "open" if len(links) <= OPEN_WINDOWS else None
    yield tag("details", tag("summary", "The windows in words"), _window_table(found), open=state)


def _alternative(document: Document, links: Sequence[CompletedWindow], number: int, count: int) -> Markup:
    title = f"Alternative {number} of {count}" if count > 1 else ""
    drawing = window_graph(document, links, title or "The window graph")
    return tag("figure", *([tag("figcaption", title)] if title else []), drawing)


def _window_table(found: Sequence[Sequence[CompletedWindow]]) -> Markup:
    rows = []
    for number, links in enumerate(found, start=1):
        head = [tag("td", f"alternative {number}")] if len(found) > 1 else []
        for link in links:
            cells = [tag("td", text, class_="words") for text in (link.sentence, link.origin)]
            rows.append(tag("tr", *head, *cells))
    return tag("div", tag("table", tag("tbody", *rows)), class_="scroll")


def _plan(document: Document, *, drawn: bool) -> Iterator[Markup]:
    if drawn:
        yield tag("h3", "Plan")
        yield tag("figure", plan_picture(document))
    for number, stage in enumerate(document.stages, start=1):
        if stage.dealt is not None:
            title = f"Stage {number}: slices on workers"
            drawing = slices_picture(stage.dealt, title)
            yield tag("figure", tag("figcaption", title), drawing, slices_legend(stage.dealt))
    yield tag("h3", f"Candidates, and why “{document.chosen.plan}” was chosen")
    yield from chart(document)


def _sites(document: Document) -> Iterator[Markup]:
    """Yield how streams travel from their sites; nothing where none is at one."""
    if not document.shipments:
        return
    yield tag("h3", "From sites")
    heads = (
        "stream",
        "way",
        "what travels",
        f"per {document.unit}",
        "messages",
        "link time",
        "rows that match",
    )
    ways = [(each, number) for each in document.shipments for number in range(len(each.ways))]
    yield _table(heads, [_way_row(*way) for way in ways])


def _overload(document: Document) -> Iterator[Markup]:
    """Yield what happens when it is too much; nothing where nothing would."""
    if document.overload is not None:
        yield tag("h3", "Overload")
        yield tag("ul", *(tag("li", line) for line in overload_lines(document)))


def _way_row(each: ShipmentEntry, number: int) -> list[str]:
    """Return the row of a way to ship a stream, the chosen one first."""
    way = each.ways[number]
    return [
        tag("b", each.alias) if not number else "",
        f"{way.shipping}, chosen" if not number else way.shipping,
        way.words,
        size(way.size),
        figure(way.messages),
        seconds(way.seconds),
        _fact(each.matched, _share(each.matched.value)) if not number else "",
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    head = tag("tr", *(tag("th", each) for each in heads))
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")


def _statistics(document: Document) -> Iterator[Markup]:
    yield tag("h3", "Statistics")
    filters = any(each.filters for each in document.streams)
    heads = ["stream", f"rows per {document.unit}", "row width", "out of order"]
    heads += [*(["filter selectivity"] if filters else []), "distinct keys", "most frequent key"]
    known = zip(document.streams, document.statistics, strict=True)
    yield _table(heads, [_stream_row(document, *pair, filters) for pair in known])
    yield tag("p", _sources_note(document), class_="note")
    yield from (tag("p", f"{each}.", class_="note") for each in document.assumptions)


def _stream_row(document: Document, stream: StreamEntry, known: StatisticsEntry, filters: bool) -> list[str]:
    disorder = signed(round(known.disorder.value), document)
    kept = _fact(known.selectivity, _share(known.selectivity.value)) if stream.filters else "–"
    return [
        tag("b", shown(stream)),
        _fact(known.rate, figure(known.rate.value)),
        _fact(known.width, size(known.width.value)),
        _fact(known.disorder, disorder) if stream.streaming else "–",
        *([kept] if filters else []),
        join(*(_fact(key.distinct, figure(key.distinct.value)) for key in known.keys)) or "–",
        join(*(_fact(key.heaviest, _share(key.heaviest.value)) for key in known.keys)) or "–",
    ]


def _fact(estimate: EstimateEntry, text: str) -> Markup:
    source = tag("span", estimate.source, class_=f"source {estimate.source}")
    return tag("div", text, source, class_="fact")


def _share(value: float) -> str:
    return f"{figure(100 * value)} % of rows"


def _sources_note(document: Document) -> str:
    sources = [each.source for known in document.statistics for each in _estimates(known)]
    guessed = sources.count("default")
    if not guessed:
        return "None of these numbers is a default."
    return (
        f"{guessed} of these {len(sources)} numbers {'is a default' if guessed == 1 else 'are defaults'}. "
        "Run ANALYZE STREAM to measure the real ones."
    )


def _estimates(known: StatisticsEntry) -> Iterator[EstimateEntry]:
    yield from (known.rate, known.width, known.disorder, known.selectivity)
    yield from (each for key in known.keys for each in (key.distinct, key.heaviest))
