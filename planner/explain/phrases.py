"""What the renderers of a document say with the same words: times, windows, retention, stages."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from wjoin.grammar.plurals import counted, listed
from wjoin.planner.explain import document as doc
from wjoin.planner.figures import figure, seconds
from wjoin.planner.windows.lengths import timespan


class BoundOrigin(Enum):
    """Where the bounds of two streams come from."""

    GIVEN = "given"
    TIGHTENED = "tightened"
    PARTLY = "partly given"
    DERIVED = "derived"
    FREE = "free"


class Lying(Enum):
    """What a worker does with a row that it gets: it keeps it, also as one of several, or only meets it."""

    KEEPS = "keeps it"
    COPIES = "keeps a copy"
    MEETS = "meets it"


SIGNS = {Lying.KEEPS: "#", Lying.COPIES: "+", Lying.MEETS: "o"}
"""What stands for each in a drawing of text."""


@dataclass(frozen=True)
class CompletedWindow:
    """The completed window of two streams in one alternative.

    ``interval`` bounds how much later ``second`` is than ``first``; they are turned where it reads
    better. ``directed`` is false where it is the same in both directions, or free. ``was`` is the interval
    as given where it was tightened, empty otherwise. ``sentence`` is the bounds as EXPLAIN has them.
    """

    first: str
    second: str
    interval: str
    directed: bool
    kind: BoundOrigin
    was: str
    sentence: str
    origin: str

    @property
    def hint(self) -> str:
        """The bounds, and where they come from."""
        return f"{self.sentence} ({self.origin})"


def lasting(value: int, document: doc.Document) -> str:
    """Return a duration; a plain number where event time is integral."""
    return str(value) if document.time == doc.INTEGRAL else timespan(value)


def signed(value: int, document: doc.Document) -> str:
    """Return a duration with the sign that printers use."""
    return lasting(value, document).replace("-", "−")


def moved(time: str, bound: int, document: doc.Document) -> str:
    """Return a time and how much is added to it, or taken away."""
    return f"{time} {'-' if bound < 0 else '+'} {lasting(abs(bound), document)}" if bound else time


def closing(document: doc.Document) -> Iterator[str]:
    """Yield when a group by MATCH_TIME() closes, and what holds it open, where Spark has such groups."""
    if document.closing:
        ends = ", ".join(f"{each.alias} past {moved('end', each.lag, document)}" for each in document.closing)
        yield (
            f"a group by MATCH_TIME() closes after every stream has passed its end: {ends}; "
            "an idle stream keeps it open"
        )


def called(call: doc.CallEntry) -> str:
    """Return what a call of a predicate costs, what the condition on it keeps, and who says so."""
    share = f"selectivity {figure(100 * call.keeps.value)} %"
    told = {call.cost_us.source, call.keeps.source}
    cost = f"{seconds(call.cost_us.value / 1e6)} per pair"
    if len(told) == 1:
        return f"{cost}, {share} ({told.pop()})"
    return f"{cost} ({call.cost_us.source}), {share} ({call.keeps.source})"


def travelling(stream: doc.StreamEntry) -> str:
    """Return the columns of a stream that travel, those last that only the join reads."""
    alone = f"; only the join reads {', '.join(stream.joined_by)}" if stream.joined_by else ""
    return (", ".join(stream.columns) or "none") + alone


def warnings(document: doc.Document) -> Iterator[str]:
    """Yield that the network sets the pace (PSP 2009, equation 6), and what is kept or missing forever."""
    if document.network > 1:
        yield (
            f"sending rows to the workers takes {figure(document.network)} times as long as joining them; "
            "use fewer workers or columns, or set wjoin.network to the real bandwidth"
        )
    if not keeps(document):
        return
    if document.undated:
        yield (
            f"MATCH_TIME() has no watermark, so a streaming query cannot aggregate by it: {document.undated}"
        )
    for stream in document.streams:
        if stream.unbounded and not stream.kept_rows:
            yield (
                f"the rows of {stream.alias} are kept forever: no window limits how far "
                f"{listed(stream.unbounded)} can be after {stream.alias}"
            )


def alternatives(document: doc.Document) -> list[list[CompletedWindow]]:
    """Return the completed windows of each alternative."""
    found: dict[int, list[CompletedWindow]] = {}
    given = {_place(each): each for each in document.constraints.given}
    for each in document.constraints.completed:
        found.setdefault(each.alternative, []).append(_link(each, given.get(_place(each)), document))
    return [found[number] for number in sorted(found)]


def _place(each: doc.WindowEntry) -> tuple[int, str, str]:
    return each.alternative, each.from_, each.to


def _link(each: doc.CompletedEntry, given: doc.WindowEntry | None, document: doc.Document) -> CompletedWindow:
    low, high = each.lo, each.hi
    turned = _reads_backward(low, high)
    kind = BoundOrigin(each.kind)
    was = given if kind is BoundOrigin.TIGHTENED else None
    return CompletedWindow(
        *((each.to, each.from_) if turned else (each.from_, each.to)),
        interval=_interval(each, document, turned),
        directed=kind is not BoundOrigin.FREE and low != (None if high is None else -high),
        kind=kind,
        was=_interval(was, document, turned) if was else "",
        sentence=f"{each.to} − {each.from_}: {_interval(each, document)}",
        origin=each.origin,
    )


def _reads_backward(low: int | None, high: int | None) -> bool:
    """Return whether an interval says more plainly how much the first stream is after the second."""
    if high is None:
        return low is not None and low < 0
    return high <= 0 and low != -high


def _interval(window: doc.WindowEntry, document: doc.Document, turned: bool = False) -> str:
    """Return the bounds of a window, of ``from_`` after ``to`` where it is turned."""
    low, high = window.lo, window.hi
    if turned:
        low, high = (None if high is None else -high), (None if low is None else -low)
    if low is None:
        return "free" if high is None else f"≤ {signed(high, document)}"
    if high is None:
        return f"≥ {signed(low, document)}"
    if low == high:
        return signed(low, document)
    if low == -high:
        return f"± {signed(high, document)}"
    return f"{signed(low, document)} … {signed(high, document)}"


def shown(stream: doc.StreamEntry) -> str:
    """Return a stream's name with that of its relation."""
    relation = " ".join(stream.relation.split())
    return stream.alias if stream.alias == relation else f"{stream.alias} = {relation}"


def rate(document: doc.Document, stream: doc.StreamEntry) -> str:
    """Return how many rows a stream brings, and from where that is known."""
    known = next(each.rate for each in document.statistics if each.alias == stream.alias)
    return f"{counted(figure(known.value), 'row')}{document.per} ({known.source})"


def keeps(document: doc.Document) -> bool:
    """Return whether the plan keeps rows by watermarks of its own."""
    return document.streaming and not document.native


def is_held(document: doc.Document, alias: str) -> bool:
    """Return whether the rows of a stream stay at its site until they are asked for."""
    return any(each.alias == alias and each.ways[0].shipping == "held" for each in document.shipments)


def passing(stream: doc.StreamEntry) -> str:
    """Return until when a row of a stream is kept that later rows of it end."""
    return f"the watermarks of the others pass {stream.kept_rows}"


def retention(document: doc.Document, entry: doc.InputEntry) -> str:
    """Return how long the rows of a stage's input are kept, empty where nothing is."""
    if not keeps(document) or not entry.kept_for:
        return ""
    first = entry.members[0]
    stream = next(each for each in document.streams if each.alias == first)
    joined, column = len(entry.members) > 1, stream.event_time
    if stream.kept_rows and not joined:
        return f"kept until {passing(stream)}"
    time = f"{first}.{column}" if joined else column
    groups: dict[int, list[str]] = {}
    for other, bound in entry.kept_for.items():
        if bound is not None:
            groups.setdefault(bound, []).append(other)
    passed = [f"{listed(names)} passes {_unbroken(time, bound, document)}" for bound, names in groups.items()]
    limits = ["the watermark of " + " and of ".join(passed)] if passed else []
    limits += [f"{other} ends" for other, bound in entry.kept_for.items() if bound is None]
    # Its other members may allow less.
    kept = "held at its site" if not joined and is_held(document, first) else "kept"
    return f"{kept} until {'at the latest ' if joined or stream.ends else ''}{listed(limits)}"


def _unbroken(time: str, bound: int, document: doc.Document) -> str:
    # No line is to break here.
    text = moved(time, bound, document)
    return text.replace(f"{time} -", f"{time} −").replace(" ", "\u00a0") if bound else text


def orders(stage: doc.StageEntry) -> Iterator[str]:
    """Yield in which order new rows of a stage's inputs meet the others."""
    if any(each.hop is not None for each in stage.inputs):
        # Each input says it of its own rows.
        return
    if not stage.order and len(stage.inputs) > 2:
        yield "new rows probe the smallest input first"
    for first, *others in stage.order if len(stage.inputs) > 2 else ():
        yield f"new rows of {first} probe {', then '.join(others)}"


def input_words(entry: doc.InputEntry) -> str:
    """Return an input of a stage and its key; of a hop what its rows do there."""
    if entry.hop is not None:
        return hop_words(entry, entry.hop)
    key = f"key {', '.join(entry.key)}" if entry.key else "no key"
    return f"{', '.join(entry.members)}: {key}"


def hop_title(stage: doc.StageEntry, number: int) -> str | None:
    """Return what stands for a stage where it is a hop, or puts together what rows have begun; else None."""
    if stage.gathers:
        return "combines the partial results of one row"
    return f"hop {number}" if any(each.hop is not None for each in stage.inputs) else None


def hop_words(entry: doc.InputEntry, hop: doc.HopEntry) -> str:
    """Return what the rows of an input do in a hop."""
    if hop.newest is not None:
        begun = f"partial results {', '.join(entry.members)} of new {hop.newest}"
        if not hop.meets:
            return begun
        return f"{begun} {'join those of the same row with' if hop.gathered else 'probe'} {listed(hop.meets)}"
    doing = [f"new rows probe {' and, separately, '.join(hop.meets)}"] if hop.meets else []
    if hop.kept:
        copy = f" (a copy of hop {listed(list(map(str, hop.before)))})" if hop.before else ""
        doing.append(f"stored for new {listed(hop.kept)}{copy}")
    if hop.passed_on:
        doing.append("forwarded")
    return f"{entry.members[0]}: {', '.join(doing)}"


def after_stages(document: doc.Document) -> list[doc.StreamEntry]:
    """Return the static relations that Spark joins after the stages."""
    later = {each.alias for each in document.lookups}
    return [each for each in document.streams if each.alias in later]
