"""The plan as a drawing: sources, stages, what Spark does after them, and the result.

Boxes are text that the browser lays out: each stands to the right of those that feed it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wjoin.grammar.plurals import counted
from wjoin.planner.explain import phrases
from wjoin.planner.explain.document import Document, InputEntry, StreamEntry
from wjoin.planner.explain.markup import Markup, tag
from wjoin.planner.figures import figure
from wjoin.planner.windows.lengths import timespan

_Line = tuple[str, str]
"""The class of a line of text, and the text; an empty one is left out."""


@dataclass(frozen=True)
class _Box:
    """A box of the drawing with its lines, the boxes that feed it, and places for ``live`` numbers."""

    title: str
    kind: str
    lines: Sequence[_Line]
    feeds: Sequence["_Box"] = ()
    live: Sequence[str] = ()


def plan_picture(document: Document, live: str | None = None) -> Markup:
    """Return the drawing of a plan.

    With ``live`` its boxes have places for numbers of the running query: texts with an attribute
    ``data-live``, whose value is ``live``, a colon and what the number is: ``rows``, ``kept`` and ``lost`` of
    a stream (a colon, its alias), ``compared`` and ``matched`` of a stage (a colon, its number from 0),
    ``results``. Of a plan that Spark's own joins run only what is lost is counted.
    """
    title = f"Plan {document.chosen.plan}: sources, stages and result"
    return tag("div", _drawn(_result(document), live), class_="plan", role="group", aria_label=title)


def _drawn(box: _Box, live: str | None) -> Markup:
    """Return a box behind all that feed it."""
    texts = [tag("div", text, class_=class_) for class_, text in (("name", box.title), *box.lines) if text]
    if live is not None:
        texts += [tag("div", "–", class_="live", data_live=f"{live}:{place}") for place in box.live]
    own = tag("div", *texts, class_=f"box {box.kind}")
    feeds = [_drawn(each, live) for each in box.feeds]
    return tag("div", *([tag("div", *feeds, class_="feeds")] if feeds else []), own, class_="branch")


def _result(document: Document) -> _Box:
    """Return the box of the result, with all others behind it."""
    later = phrases.after_stages(document)
    lines = [("value", f"{counted(figure(document.chosen.results), 'row')}{document.per} expected")]
    if document.match_delay is not None:
        delay = phrases.signed(document.match_delay, document)
        lines.append(("meaning", f"MATCH_TIME is out of order by at most {delay}"))
    lines += [("meaning", text) for text in phrases.closing(document)]
    checks = [("value", f"check {text}") for text in document.residual]
    feed = _joined(document)
    if later:
        feed = _spark(document, feed, later, checks)
    elif checks:
        lines = [("choice", "checked by Spark"), *checks, *lines]
    return _Box("Result", "result", lines, [feed], () if document.native else ("results",))


def _joined(document: Document) -> _Box:
    """Return the box of the last stage, that of the one relation where there is none."""
    if document.stages:
        return _stage(document, len(document.stages))
    only = next(each for each in document.streams if each not in phrases.after_stages(document))
    return _source(document, only, "no state")


def _spark(document: Document, source: _Box, later: Sequence[StreamEntry], checks: Sequence[_Line]) -> _Box:
    """Return the box of the joins with static relations."""
    kinds = {each.alias: each.kind for each in document.lookups if each.kind}
    shown = {each: f"{kind} JOIN with {each}" for each, kind in kinds.items()}
    lines = [("port", f"{shown.get(each.alias, each.alias)}: static, no state") for each in later]
    feeds = [source, *(_source(document, each, "") for each in later)]
    return _Box("Spark join", "spark", [*lines, *checks], feeds)


def _stage(document: Document, number: int, kept: str = "") -> _Box:
    """Return the box of a stage, counted from 1; ``kept`` says how long its results are."""
    stage = document.stages[number - 1]
    hop = phrases.hop_title(stage, number)
    title = "Spark's own two-way joins" if document.native else hop.capitalize() if hop else f"Stage {number}"
    lines: list[_Line] = []
    feeds = []
    for place, entry in enumerate(stage.inputs):
        # All that a hop makes comes by one way.
        if not hop or entry.stage is None or place == 0:
            feeds.append(_feed(document, entry))
        lines.append(("port", phrases.input_words(entry)))
        if hop and entry.stage is not None:
            lines.append(("kept", phrases.retention(document, entry)))
    for part in stage.parts:
        lines += [("choice", f"{part.name} {part.value}"), ("meaning", part.meaning)]
    bands = (f"band: {each.condition}" for each in stage.bands)
    lines += [("value", text) for text in (*stage.notes, *phrases.orders(stage), *bands)]
    for call in stage.calls:
        lines += [("value", f"call {call.condition}"), ("meaning", phrases.called(call))]
        lines.append(("meaning", call.tried))
    if document.native:
        lines.append(("meaning", "one watermark for the query, the minimum over all streams"))
    live = () if document.native else (f"compared:{number - 1}", f"matched:{number - 1}")
    return _Box(title, "stage", [*lines, ("kept", kept)], feeds, live)


def _feed(document: Document, entry: InputEntry) -> _Box:
    kept = phrases.retention(document, entry)
    if entry.stage is None:
        stream = next(each for each in document.streams if each.alias == entry.members[0])
        return _source(document, stream, kept)
    return _stage(document, entry.stage, f"its rows are {kept}" if kept and entry.hop is None else "")


def _source(document: Document, stream: StreamEntry, kept: str) -> _Box:
    time = f"event time {stream.event_time}" if stream.event_time else "no event time"
    if stream.streaming:
        time += f", delay {phrases.signed(stream.delay, document)}"
        time += f", silent after {timespan(stream.idle_after)}" if stream.idle_after else ""
    read = stream.columns or stream.joined_by
    lines = [
        ("value", phrases.rate(document, stream)),
        ("value", time if stream.streaming else f"{time}; static"),
        *(("value", f"filter {text}") for text in stream.filters),
        ("meaning", f"columns {phrases.travelling(stream)}" if read else "no columns needed"),
        ("kept", kept),
    ]
    kind = "source" if stream.streaming else "source static"
    told = ("lost",) if document.native else ("rows", "kept", "lost")
    return _Box(phrases.shown(stream), kind, lines, live=[f"{each}:{stream.alias}" for each in told])
