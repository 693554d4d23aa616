"""The plan as a drawing: sources, stages, what Spark does after them, and the result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wjoin.grammar.plurals import counted
from wjoin.planner.explain import phrases
from wjoin.planner.explain.document import Document, InputEntry, StageEntry, StreamEntry
from wjoin.planner.explain.markup import Markup, fitted, picture, tag, wrapped
from wjoin.planner.figures import figure

LINE_SIZE = 12
"""The size of the letters in a box, in pixels."""

_LINE = 17
_PADDING = 12
_WIDTH = 236

LINE_WIDTH = _WIDTH - 2 * _PADDING
"""The room for a line of a box, in pixels."""

_APART = 46
_BETWEEN = 16
_MARGIN = 8
_LINES = 4
_KEPT_LINES = 8
_INDENT = 12


LIVE = "live"
"""The class of the lines whose texts move while a query runs."""


@dataclass
class _Box:
    """A box of the drawing: its lines of text as pairs of class and text, and the boxes that feed it.

    Of a line of the class LIVE the text is the name of its place: what stands there is put in later.
    ``ports`` are the lines at which the feeding boxes enter; ``column`` counts from the left, ``name``
    is that of its stream or the number of its stage, from 0.
    """

    title: str
    kind: str
    lines: list[tuple[str, str]]
    feeds: list["_Box"] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    column: int = 0
    top: float = 0.0
    name: str = ""

    @property
    def height(self) -> float:
        return 2 * _PADDING + _LINE * (len(self.lines) + 1) - 4

    @property
    def middle(self) -> float:
        return self.top + self.height / 2

    @property
    def left(self) -> float:
        return _MARGIN + self.column * (_WIDTH + _APART)

    def below(self) -> Iterator["_Box"]:
        """Yield the box and all that feed it."""
        yield self
        for each in self.feeds:
            yield from each.below()


def plan_picture(document: Document, live: str | None = None) -> Markup:
    """Return the drawing of a plan.

    With ``live`` its boxes have places for numbers of the running query: texts with an attribute
    ``data-live``, whose value is ``live``, a colon and what the number is: ``rows``, ``kept`` and ``lost`` of
    a stream (a colon, its alias), ``compared`` and ``matched`` of a stage (a colon, its number from 0),
    ``results``. Of a plan that Spark's own joins run only what is lost is counted.
    """
    result = _result(document)
    if live is not None:
        _enlivened(result, live, native=document.native)
    _columns(result)
    height = _placed(result, _MARGIN)
    boxes = list(result.below())
    drawn = [*(each for box in boxes for each in _flows(box)), *(_drawn(box) for box in boxes)]
    width = result.left + _WIDTH + _MARGIN
    title = f"Plan {document.chosen.plan}: sources, stages and result"
    return picture(width, height + 2 * _MARGIN, title, *drawn, class_="plan")


def _enlivened(result: _Box, live: str, *, native: bool) -> None:
    """Add the places for numbers of a running query to the boxes."""
    for box in result.below():
        box.lines += [(LIVE, f"{live}:{place}") for place in _places(box, native=native)]


def _places(box: _Box, *, native: bool) -> Iterator[str]:
    if box.kind == "source" and box.name:
        yield from (f"{each}:{box.name}" for each in (("lost",) if native else ("rows", "kept", "lost")))
    elif box.kind == "stage" and not native:
        yield from (f"{each}:{box.name}" for each in ("compared", "matched"))
    elif box.kind == "result" and not native:
        yield "results"


def _result(document: Document) -> _Box:
    """Return the box of the result, with all others behind it."""
    later = phrases.after_stages(document)
    rates = f"{counted(figure(document.chosen.results), 'row')}{document.per} expected"
    lines = _wrapped("value", rates)
    if document.match_delay is not None:
        delay = phrases.signed(document.match_delay, document)
        lines += _wrapped("meaning", f"MATCH_TIME is out of order by at most {delay}")
    lines += [line for text in phrases.closing(document) for line in _wrapped("meaning", text)]
    box = _Box("Result", "result", lines, [_joined(document)])
    checks = [line for text in document.residual for line in _wrapped("value", f"check {text}")]
    if later:
        box.feeds = [_spark(document, box.feeds[0], later, checks)]
    elif checks:
        box.lines = [("choice", "checked by Spark"), *checks, *box.lines]
    return box


def _joined(document: Document) -> _Box:
    """Return the box of the last stage, that of the one relation where there is none."""
    made: list[_Box] = []
    for number, stage in enumerate(document.stages, start=1):
        made.append(_stage(document, stage, number, made))
    if made:
        return made[-1]
    only = next(each for each in document.streams if each not in phrases.after_stages(document))
    return _source(document, only, "no state")


def _spark(
    document: Document, source: _Box, later: Sequence[StreamEntry], checks: Sequence[tuple[str, str]]
) -> _Box:
    """Return the box of the joins with static relations."""
    lines = [line for each in later for line in _wrapped("port", f"{each.alias}: static, no state")]
    feeds = [source, *(_source(document, each, "") for each in later)]
    return _Box("Spark join", "spark", [*lines, *checks], feeds)


def _stage(document: Document, stage: StageEntry, number: int, made: Sequence[_Box]) -> _Box:
    hop = phrases.hop_title(stage, number)
    title = hop.capitalize() if hop else f"Stage {number}"
    title = "Spark's own two-way joins" if document.native else title
    box = _Box(title, "stage", [], name=str(number - 1))
    for place, entry in enumerate(stage.inputs):
        # All that a hop makes comes by one way.
        if not hop or entry.stage is None or place == 0:
            box.ports.append(len(box.lines))
            box.feeds.append(_feed(document, entry, made))
        box.lines += _wrapped("port", phrases.input_words(entry))
        if hop and entry.stage is not None:
            box.lines += _wrapped("kept", phrases.retention(document, entry))
    for part in stage.parts:
        box.lines.append(("choice", f"{part.name} {part.value}"))
        box.lines += _wrapped("meaning", part.meaning)
    for text in (*stage.notes, *phrases.orders(stage), *(f"band: {each.condition}" for each in stage.bands)):
        box.lines += _wrapped("value", text)
    for call in stage.calls:
        box.lines += _wrapped("value", f"call {call.condition}")
        box.lines += _wrapped("meaning", phrases.called(call))
        box.lines += _wrapped("meaning", call.tried) if call.tried else []
    if document.native:
        box.lines += _wrapped("meaning", "one watermark for the query, the minimum over all streams")
    return box


def _feed(document: Document, entry: InputEntry, made: Sequence[_Box]) -> _Box:
    kept = phrases.retention(document, entry)
    if entry.stage is None:
        stream = next(each for each in document.streams if each.alias == entry.members[0])
        return _source(document, stream, kept)
    box: _Box = made[entry.stage - 1]
    box.lines += _wrapped("kept", f"its rows are {kept}" if kept and entry.hop is None else "")
    return box


def _source(document: Document, stream: StreamEntry, kept: str) -> _Box:
    time = f"event time {stream.event_time}" if stream.event_time else "no event time"
    if stream.streaming:
        time += f", delay {phrases.signed(stream.delay, document)}"
    texts = [
        ("value", phrases.rate(document, stream)),
        ("value", time if stream.streaming else f"{time}; static"),
        *(("value", f"filter {text}") for text in stream.filters),
        ("meaning", f"columns {phrases.travelling(stream)}" if _read(stream) else "no columns needed"),
        ("kept", kept),
    ]
    lines = [line for class_, text in texts for line in _wrapped(class_, text)]
    kind = "source" if stream.streaming else "source static"
    return _Box(phrases.shown(stream), kind, lines, name=stream.alias)


def _read(stream: StreamEntry) -> bool:
    return bool(stream.columns or stream.joined_by)


def _wrapped(class_: str, text: str) -> list[tuple[str, str]]:
    if not text:
        return []
    lines = _KEPT_LINES if class_ == "kept" else _LINES
    room = LINE_WIDTH - (_INDENT if class_ == "meaning" else 0)
    return [(class_, line) for line in wrapped(text, LINE_SIZE, room, lines)]


def _columns(box: _Box) -> int:
    """Set the columns of a box and those that feed it: sources stand right before what they feed."""
    box.column = 1 + max((_columns(each) for each in box.feeds), default=-1)
    for each in box.feeds:
        if not each.feeds:
            each.column = box.column - 1
    return box.column


def _placed(box: _Box, top: float) -> float:
    """Place a box beside those that feed it, from ``top`` down; return where they end."""
    bottom = top
    for number, each in enumerate(box.feeds):
        bottom = _placed(each, bottom + (_BETWEEN if number else 0))
    fed = (bottom + top) / 2
    if len(box.feeds) == 1:
        fed = box.feeds[0].middle
    box.top = max(top, fed - box.height / 2)
    return max(bottom, box.top + box.height)


def _flows(box: _Box) -> Iterator[Markup]:
    """Yield the lines into a box."""
    ports = box.ports or _spread(box)
    for feed, port in zip(box.feeds, ports, strict=True):
        x1, y1 = feed.left + _WIDTH, feed.middle
        x2, y2 = box.left, box.middle
        if len(box.feeds) > 1:
            y2 = box.top + _PADDING + _LINE * (port + 1) + 4
        bend = min(_APART, x2 - x1) / 2
        middle = x2 - bend
        curve = f"C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2 - 9:.1f} {y2:.1f}"
        path = f"M{x1:.1f} {y1:.1f} H{middle - bend:.1f} {curve}"
        head = f"{x2 - 9:.1f},{y2 - 5:.1f} {x2:.1f},{y2:.1f} {x2 - 9:.1f},{y2 + 5:.1f}"
        yield tag("g", tag("path", d=path), tag("polygon", points=head), class_="flow")


def _spread(box: _Box) -> list[int]:
    """Return lines for the boxes that feed one without ports: its title, then line by line."""
    return [number - 1 for number in range(len(box.feeds))]


def _drawn(box: _Box) -> Markup:
    x, first = box.left + _PADDING, box.top + _PADDING + 10
    name = fitted(box.title, LINE_SIZE + 1, _WIDTH - 2 * _PADDING, middle=True)
    texts = [tag("text", name, class_="name", x=x, y=first)]
    for number, (class_, text) in enumerate(box.lines, start=1):
        indent = _INDENT if class_ == "meaning" and box.kind == "stage" else 0
        place = {"x": x + indent, "y": first + _LINE * number}
        if class_ == LIVE:
            texts.append(tag("text", "–", class_=class_, data_live=text, **place))
            continue
        texts.append(tag("text", fitted(text, LINE_SIZE, LINE_WIDTH - indent), class_=class_, **place))
    frame = tag("rect", x=box.left, y=box.top, width=_WIDTH, height=box.height, rx=8)
    hint = tag("title", "\n".join([box.title, *(text for class_, text in box.lines if class_ != LIVE)]))
    return tag("g", hint, frame, *texts, class_=f"box {box.kind}")
