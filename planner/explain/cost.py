"""EXPLAIN COST: the statistics of the streams, and every candidate with its cost."""

from collections.abc import Iterator, Mapping, Sequence

from wjoin.grammar.plurals import counted
from wjoin.planner.explain import document as doc
from wjoin.planner.explain.phrases import lasting
from wjoin.planner.figures import figure, seconds, size

TERMS = (
    "summaries",
    *("rows", "searches", "comparisons", "tuples", "predicates"),
    *("state", "results", "micro-batches", "idle"),
)
"""The terms of a cost, in the order in which they are shown."""


def statistics_lines(document: doc.Document) -> Iterator[str]:
    """Yield what is known of each FROM item and each band, and from where; first of which nothing is."""
    yield from _unknown_lines(document)
    for stream, known in zip(document.streams, document.statistics, strict=True):
        if known.known:
            yield f"{stream.alias}: {_sourced(list(_facts(document, stream, known)))}"
    for band in dict.fromkeys(band for stage in document.stages for band in stage.bands):
        yield f"{band.condition}: {_sourced([(band.keeps, f'selectivity {figure(band.keeps.value)}')])}"
    yield from document.assumptions


def _unknown_lines(document: doc.Document) -> Iterator[str]:
    names = document.unknown
    if not names:
        return
    first = next(each for each in document.statistics if not each.known)
    values = f", {figure(document.default_distinct)} distinct values, no skew" if first.keys else ""
    defaults = f"{counted(figure(first.rate.value), 'row')}{document.per}, width from column types{values}"
    yield f"No statistics for {', '.join(names)}; using defaults ({defaults})."
    declared = [each.relation for each in document.streams if each.streaming and each.relation in names]
    if declared:
        yield f"Run ANALYZE STREAM {declared[0]}, or ALTER STREAM {declared[0]} SET STATISTICS (rate = …)."


def _facts(
    document: doc.Document, stream: doc.StreamEntry, known: doc.StatisticsEntry
) -> Iterator[tuple[doc.EstimateEntry, str]]:
    yield known.rate, f"{counted(figure(known.rate.value), 'row')}{document.per}"
    yield known.width, f"{size(known.width.value)} per row"
    if stream.streaming and known.disorder.source != "default":
        # Its default is the delay, which is shown as such.
        yield known.disorder, f"{lasting(round(known.disorder.value), document)} out of order"
    if stream.filters or known.selectivity.source == "measured":
        yield known.selectivity, f"filter selectivity {figure(known.selectivity.value)}"
    for key in known.keys:
        yield key.distinct, f"{figure(key.distinct.value)} distinct {', '.join(key.expressions)}"
        yield key.heaviest, f"most frequent {figure(key.heaviest.value)} of rows"
        if key.local is not None:
            yield key.local, f"{figure(key.local.value)} of the pairs with one key at one node"


def _sourced(facts: Sequence[tuple[doc.EstimateEntry, str]]) -> str:
    """Return facts with their sources: one for all, or one behind each."""
    sources = {each.source for each, _ in facts}
    if len(sources) == 1:
        return f"{', '.join(text for _, text in facts)} ({sources.pop()})"
    return ", ".join(f"{text} ({each.source})" for each, text in facts)


def choice_line(document: doc.Document) -> str:
    """Return in one line how many plans there were, and what the chosen one is expected to do."""
    best, count = document.chosen, len(document.ranked)
    of = "the only plan" if count == 1 else f"chosen from {count} plans (EXPLAIN COST lists them)"
    state = f"; state: {counted(figure(best.state_rows), 'row')}" if document.streaming else ""
    comparisons = counted(figure(best.comparisons), "comparison")
    results = counted(figure(best.results), "result")
    return f"{of}; per {document.unit} of event time: {comparisons}, {results}{state}"


def shipment_lines(document: doc.Document) -> Iterator[str]:
    """Yield how each stream at a site is shipped, what each way costs, and the statistics behind that."""
    for each in document.shipments:
        for number, way in enumerate(each.ways):
            taken = f"  instead of {way.shipping}" if number else f"{each.alias} {way.shipping}"
            messages = counted(figure(way.messages), "message")
            cost = f"{size(way.size)} in {messages} per {document.unit}"
            yield f"{taken}: {way.words}; {cost}, {seconds(way.seconds)} of link time"
        if each.ways[0].seconds > 1:
            yield f"  the link is too slow: the rows of one {document.unit} take longer than that to send"
        link = [
            (each.matched, f"{figure(each.matched.value)} of rows are in results"),
            (each.latency, f"latency {seconds(each.latency.value)} per message"),
            (each.bandwidth, f"bandwidth {size(each.bandwidth.value)}/s"),
        ]
        yield f"  {_sourced(link)}"


def faster_lines(document: doc.Document) -> Iterator[str]:
    """Yield which plan would be much faster, and how to get it."""
    faster = document.faster
    if faster is None:
        return
    yield f"{figure(faster.times)} times as fast: {faster.words}"
    if faster.begun:
        yield "  it needs a new checkpoint"
    else:
        hint = f"; a SELECT uses it with the hint {faster.hint}" if faster.hint else ""
        yield f"  INSERT INTO uses it with a new checkpoint, and this statement names none{hint}"


def cost_text(document: doc.Document) -> str:
    """Return the candidates of a block as a table: what each costs beyond the others, and why it lost."""
    shared, ranked = document.shared, document.ranked
    terms = [name for name in TERMS if any(beyond(each, shared).get(name, 0.0) > 0 for each in ranked)]
    head = ["plan", "extra" if shared else "cost", *terms, "pairs compared", "rows of state"]
    approximate = any(each.visits for each in ranked)
    head += ["visits a row", "lost"] if approximate else []
    rows = [
        [*_row(each, shared, terms), *([figure(each.visits), f"{each.missing:.1%}"] if approximate else [])]
        for each in ranked
    ]
    table = aligned([head, *rows])
    ends = ["", *(each.lost or "chosen" for each in ranked)]
    return "\n".join(
        [
            f"Candidates (CPU time per {document.unit} of event time)",
            *([f"  {shared_line(shared)}"] if shared else []),
            *(f"{line}  {end}".rstrip() for line, end in zip(table, ends, strict=True)),
            *(f"  {unranked_line(each)}" for each in document.unranked),
        ]
    )


def candidates_text(document: doc.Document) -> str:
    """Return what ``cost_text`` does, as a list for narrow terminals: a candidate, and below it its costs."""
    shared, ranked = document.shared, document.ranked
    lines = [f"Candidates (CPU time per {document.unit} of event time)"]
    lines += [f"  {shared_line(shared)}"] if shared else []
    for each in ranked:
        more = beyond(each, shared)
        terms = sorted(((value, name) for name, value in more.items() if value > 0), reverse=True)
        parts = ", ".join(f"{name} {seconds(value)}" for value, name in terms)
        pairs, rows = (
            counted(figure(value), noun)
            for value, noun in ((each.comparisons, "pair"), (each.state_rows, "row"))
        )
        counts = f"{pairs} compared, {rows} of state"
        if each.visits:
            counts += f", {figure(each.visits)} visits a row, {each.missing:.1%} lost"
        lines += [
            f"  {each.words}: {each.lost or 'chosen'}",
            f"    {seconds(sum(more.values()))}{f' ({parts})' if len(terms) > 1 else ''}; {counts}",
        ]
    return "\n".join([*lines, *(f"  {unranked_line(each)}" for each in document.unranked)])


def shared_line(shared: Mapping[str, float]) -> str:
    """Return in words what every plan costs, the most first."""
    names = {"rows": "reading rows", "idle": "idle cores"}
    parts = ", ".join(
        f"{names.get(name, name)} {seconds(value)}"
        for name, value in sorted(shared.items(), key=lambda term: -term[1])
    )
    return f"every plan costs at least {seconds(sum(shared.values()))}: {parts}"


def unranked_line(each: doc.CandidateEntry) -> str:
    """Return in words what a plan would cost that only a hint chooses."""
    return f"{each.words}: {seconds(each.cost)} in total; {each.lost}"


def beyond(each: doc.CandidateEntry, shared: Mapping[str, float]) -> dict[str, float]:
    """Return what a candidate costs beyond what all do, by term."""
    return {name: max(0.0, value - shared.get(name, 0.0)) for name, value in each.terms.items()}


def _row(each: doc.CandidateEntry, shared: Mapping[str, float], terms: Sequence[str]) -> list[str]:
    more = beyond(each, shared)
    shown = [seconds(more[name]) if more.get(name) else "-" for name in terms]
    numbers = [seconds(sum(more.values())), *shown, figure(each.comparisons), figure(each.state_rows)]
    return [each.words, *numbers]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as indented lines: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]))
    return lines
