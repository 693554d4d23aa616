"""EXPLAIN: a document as text."""

from collections.abc import Iterator, Sequence

from wjoin.grammar.plurals import counted
from wjoin.planner.explain import document as doc
from wjoin.planner.explain.cost import choice_line, faster_lines, shipment_lines, statistics_lines
from wjoin.planner.explain.overload import overload_lines
from wjoin.planner.explain.phrases import (
    SIGNS,
    called,
    closing,
    hop_title,
    hop_words,
    is_held,
    lasting,
    moved,
    passing,
    shown,
    travelling,
    warnings,
)
from wjoin.planner.windows.lengths import timespan


def explain_text(document: doc.Document) -> str:
    """Return the plan of a block for people to read; lines without a newline at the end."""
    filters = [f"{each.alias}: {text}" for each in document.streams for text in each.filters]
    streams = [_stream(each, document) for each in document.streams]
    sections = [
        ("Streams" if document.streaming else "Relations", streams),
        *_constraints(document),
        (
            "Equality classes",
            list(_classes(document)) or ["none: the join compares every pair inside the windows"],
        ),
        ("Filters before the join", filters or ["none"]),
        ("Conditions after the join", list(_later(document)) or ["none"]),
        ("Statistics", list(statistics_lines(document))),
        *([("Sites", list(shipment_lines(document)))] if document.shipments else []),
        ("Stages", [choice_line(document), *faster_lines(document), *_stages(document), *_lookups(document)]),
    ]
    if document.streaming:
        sections.append(("Retention", list(_retention(document))))
    if document.overload is not None:
        sections.append(("Overload", list(overload_lines(document))))
    lines = []
    for title, body in sections:
        lines += [title, *(f"  {line}" for line in body)]
    return "\n".join([*lines, *(f"warning: {each}" for each in warnings(document))])


def _later(document: doc.Document) -> Iterator[str]:
    """Yield the conditions that Spark evaluates, and whether the join tests them before."""
    for each in document.later:
        where = (
            f"checked by Spark only: {each.unread}" if each.unread else "checked in the join, then by Spark"
        )
        yield each.condition if document.native else f"{each.condition}  [{where}]"


def _stream(each: doc.StreamEntry, document: doc.Document) -> str:
    delay = f", delay {lasting(each.delay, document)}" if each.streaming else ""
    delay += " (none declared)" if each.undeclared else ""
    delay += f", silent after {timespan(each.idle_after)} without a row" if each.idle_after else ""
    delay += f", late rows go to {each.late_into}" if each.late_into else ""
    time = f"event time {each.event_time}{delay}" if each.event_time else "a table without event time"
    return f"{shown(each)}: {time}; columns {travelling(each)}"


def _constraints(document: doc.Document) -> Iterator[tuple[str, list[str]]]:
    found = document.constraints
    count = max((each.alternative for each in found.completed), default=1)
    for number in range(1, count + 1):
        title = f"Constraints, alternative {number} of {count}" if count > 1 else "Constraints"
        windows = [each for each in found.completed if each.alternative == number]
        yield title, [f"{_interval(each, document)}  [{each.origin}]" for each in windows] or ["none"]
    if found.hull:
        yield "Hull of the alternatives", [_interval(each, document) for each in found.hull]
    if left_out := found.contradictory_alternatives:
        yield "Left out", [f"{counted(left_out, 'alternative')} that no rows can satisfy"]


def _interval(window: doc.WindowEntry, document: doc.Document) -> str:
    low, high = window.lo, window.hi
    difference = f"{window.to} - {window.from_}"
    if low is None and high is None:
        return f"{difference} is free"
    if low is not None and high == -low:
        return f"|{difference}| <= {lasting(high, document)}"
    low_text = "" if low is None else f"{lasting(low, document)} <= "
    high_text = "" if high is None else f" <= {lasting(high, document)}"
    return f"{low_text}{difference}{high_text}"


def _classes(document: doc.Document) -> Iterator[str]:
    for number, each in enumerate(document.equality_classes, start=1):
        yield f"{number}: {' = '.join(each.parts)}  ({each.type})"


def _stages(document: doc.Document) -> Iterator[str]:
    if document.joins:
        yield from _joins(document)
        return
    if document.constraints.hull and document.stages:
        yield f"passes {document.chosen.passes}"
    for number, stage in enumerate(document.stages, start=1):
        hop = [hop_words(each, each.hop) for each in stage.inputs if each.hop is not None]
        inputs = hop_title(stage, number) or " x ".join(map(_input, stage.inputs))
        keyless = "" if stage.gathers else " without a key"
        on = f" on class {' and '.join(map(str, stage.classes))}" if stage.classes else keyless
        yield f"{number}: {inputs}{on}"
        parts = [f"{part.name} {part.value}" for part in stage.parts if part.name != "passes"]
        yield f"   {stage.words} ({', '.join(parts)})"
        yield from (f"   {line}" for line in hop)
        yield from (f"   {line}" for line in _conditions(stage))


def _input(entry: doc.InputEntry) -> str:
    names = ", ".join(entry.members)
    text = names if entry.stage is None else f"stage {entry.stage} ({names})"
    hashed = "; hashed" if entry.hashed else ""
    return f"{text} [{', '.join(entry.key)}{hashed}]" if entry.key else text


def _conditions(stage: doc.StageEntry) -> Iterator[str]:
    """Yield how the rows of a stage lie, its checks and bands, and what orders the rows of its inputs."""
    yield from stage.notes
    if stage.dealt is not None:
        yield from _dealt(stage.dealt)
    yield from (f"check {each}" for each in stage.checks)
    yield from (f"band: {band.condition}" for band in stage.bands if not band.checked)
    for each in stage.calls:
        yield f"call {each.condition}  [{called(each)}]"
        if each.tried:
            yield f"     {each.tried}"
    orders = [
        f"{', '.join(each.members)} by {each.ordered_by}"
        for each in stage.inputs
        if each.ordered_by is not None
    ]
    if orders:
        yield f"sorted: {', '.join(orders)}"


def _dealt(dealt: doc.DealtEntry) -> Iterator[str]:
    """Yield a drawing: the workers that have the slices of time in turn, and where rows of one slice go."""
    homes = [" ".join(map(str, each)) for each in dealt.slices]
    names = ["slices, by worker", *(f"a row of {' '.join(each.members)}" for each in dealt.rows)]
    left, wide = max(map(len, names)), max(3, *map(len, homes))
    found = {word for each in dealt.rows for word in each.workers}
    legend = ", ".join(f"{sign} {lying.value}" for lying, sign in SIGNS.items() if lying.value in found)
    workers = [str(number) for number in range(1, len(dealt.rows[0].workers) + 1)]
    signs = {lying.value: sign for lying, sign in SIGNS.items()}
    yield f"{names[0]:<{left}} |{'|'.join(f'{each:^{wide}}' for each in homes)}| ..."
    yield _row("worker", left, [*workers, *(["..."] if dealt.more else [])], wide)
    for name, each in zip(names[1:], dealt.rows, strict=True):
        yield _row(name, left, [signs.get(word, ".") for word in each.workers], wide)
    yield _row("", left, [f" near the end of slice {dealt.place}: {legend}"], wide)


def _row(name: str, left: int, cells: Sequence[str], wide: int) -> str:
    return f"{name:<{left}}  {' '.join(f'{each:^{wide}}' for each in cells)}".rstrip()


def _joins(document: doc.Document) -> Iterator[str]:
    """Yield the joins of two in order, with their keys and comparisons."""
    yield "plan native: Spark's own two-way joins"
    for number, join in enumerate(document.joins, start=1):
        on = f" on {' and '.join(join.on)}" if join.on else " without a key"
        yield f"{number}: {_members(join.left)} x {_members(join.right)}{on}"
        yield from (f"   check {each}" for each in join.checks)


def _members(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _lookups(document: doc.Document) -> Iterator[str]:
    after = " after the stages" if document.stages else ""
    for each in document.lookups:
        on = f" on {' and '.join(each.equalities)}" if each.equalities else " without a key"
        checks = "".join(f", check {text}" for text in each.checks)
        if each.kind:
            yield f"{each.kind} JOIN with table {each.alias}, by Spark,{after}{on}{checks}"
        else:
            yield f"Spark joins {each.alias} (static){after}{on}{checks}"
    yield from (f"Spark runs {each} on the joined rows" for each in document.laterals)


def _retention(document: doc.Document) -> Iterator[str]:
    if document.joins:
        yield from _joins_retention(document)
        return
    if not document.stages:
        yield "no state"
    for stream in document.streams:
        limits = [
            f"{name} ends"
            if bound is None
            else f"{name}'s watermark passes "
            + " or ".join((moved(stream.event_time, bound, document), *stream.ends.get(name, ())))
            for name, bound in stream.kept_for.items()
        ]
        if stream.kept_rows:
            limits = [passing(stream)]
        if limits:
            kept = "held at its site" if is_held(document, stream.alias) else "kept"
            yield f"{stream.alias}: {kept} until {' and '.join(limits)}"
    if document.match_delay is not None:
        behind = lasting(document.match_delay, document)
        yield f"MATCH_TIME is out of order by at most {behind}"
    yield from closing(document)


def _joins_retention(document: doc.Document) -> Iterator[str]:
    """Yield how long each side of each join of two is kept."""
    yield "the query has one watermark, the minimum over all streams"
    times = {each.alias: each.event_time for each in document.streams}
    for number, join in enumerate(document.joins, start=1):
        sides = ((join.left, join.right), (join.right, join.left))
        for (own, other), bound in zip(sides, join.kept_for, strict=True):
            time = times[own[0]] if len(own) == 1 else "the latest of its event times"
            limit = f"forever: no window limits how far {_members(other)} can be after it"
            if bound is not None:
                limit = f"until the watermark passes {moved(time, bound, document)}"
            yield f"{_members(own)}: kept by join {number} {limit}"
    yield from closing(document)
