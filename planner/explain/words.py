"""What the renderers of a document say with the same words: windows, retention, stages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from wjoin.planner.durations import human
from wjoin.planner.physical import TimeKind

Document = Mapping[str, Any]
"""A document of ``planner.document``, fresh or read from JSON."""

MEANINGS = {
    ("bounds", "exact"): "what all the joined rows allow together",
    ("bounds", "lca"): "the widest window of each stream, refined later",
    ("bounds", "gca"): "the widest window of all, refined later",
    ("route", "hash"): "a key's rows meet on one worker",
    ("route", "single"): "all rows meet on one worker",
    ("kernel", "hw"): "finds the key, then the time range",
    ("kernel", "mw"): "finds the time range, then the key",
    ("kernel", "nlw"): "compares all rows",
    ("kernel", "ordered"): "finds the key, then the value range",
    ("kernel", "adaptive"): "hw or mw, as each worker sees fit",
    ("shipping", "blocks"): "whole rows travel, in blocks",
    ("passes", "hull"): "one pass over all alternatives",
    ("passes", "union"): "one pass for each alternative",
}
"""What the parts of a plan mean, by part and value."""


class Kind(Enum):
    """Where the bounds of two streams come from."""

    GIVEN = "given"
    TIGHTENED = "tightened"
    PARTLY = "partly given"
    DERIVED = "derived"
    FREE = "free"


@dataclass(frozen=True)
class Link:
    """The completed window of two streams in one alternative.

    ``interval`` bounds how much later ``second`` is than ``first``; they are turned where it reads
    better. ``directed`` is false where it is the same in both directions. ``was`` is the interval
    as given where it was tightened, empty otherwise. ``sentence`` is the bounds as EXPLAIN has them.
    """

    first: str
    second: str
    interval: str
    directed: bool
    kind: Kind
    was: str
    sentence: str
    origin: str


def time_kind(document: Document) -> TimeKind:
    """Return the kind of event time of a document."""
    return TimeKind(document["time"])


def per(document: Document) -> str:
    """Return the word for that of which rates and costs are told: a second, or a unit of event time."""
    return "unit" if time_kind(document) is TimeKind.INTEGRAL else "second"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list.

    >>> listed(["A"]), listed(["A", "B", "C"])
    ('A', 'A, B and C')
    """
    return f" {last} ".join([part for part in (", ".join(words[:-1]), words[-1]) if part])


def alternatives(document: Document) -> list[list[Link]]:
    """Return the completed windows of each alternative."""
    found: dict[int, list[Link]] = {}
    given = {_place(each): each for each in document["constraints"]["given"]}
    for each in document["constraints"]["completed"]:
        found.setdefault(each["alternative"], []).append(_link(each, given.get(_place(each)), document))
    return [found[number] for number in sorted(found)]


def _place(each: Mapping[str, Any]) -> tuple[int, str, str]:
    return each["alternative"], each["from"], each["to"]


def _link(each: Mapping[str, Any], given: Mapping[str, Any] | None, document: Document) -> Link:
    low, high, kind = each["lo"], each["hi"], time_kind(document)
    turned = _reads_backward(low, high)
    ends = (each["to"], each["from"]) if turned else (each["from"], each["to"])
    where = _kind(each, given)
    return Link(
        *ends,
        interval=_interval(*_turned(low, high, turned), kind),
        directed=low is None or high is None or low != -high,
        kind=where,
        was=_was(given, turned, kind) if where is Kind.TIGHTENED else "",
        sentence=f"{each['to']} − {each['from']}: {_interval(low, high, kind)}",
        origin=each["origin"],
    )


def _was(given: Mapping[str, Any] | None, turned: bool, kind: TimeKind) -> str:
    return _interval(*_turned(given["lo"], given["hi"], turned), kind) if given else ""


def _reads_backward(low: int | None, high: int | None) -> bool:
    """Return whether an interval says more plainly how much the first stream is after the second."""
    if high is None:
        return low is not None and low < 0
    return high <= 0 and low != -high


def _turned(low: int | None, high: int | None, turned: bool) -> tuple[int | None, int | None]:
    if not turned:
        return low, high
    return (None if high is None else -high), (None if low is None else -low)


def _kind(completed: Mapping[str, Any], given: Mapping[str, Any] | None) -> Kind:
    pairs = [(completed[end], given[end] if given else None) for end in ("lo", "hi")]
    known = [(bound, written) for bound, written in pairs if bound is not None]
    if not known:
        return Kind.FREE
    if any(written is not None and written != bound for bound, written in known):
        return Kind.TIGHTENED
    as_given = [written is not None for _, written in known]
    if all(as_given):
        return Kind.GIVEN
    return Kind.PARTLY if any(as_given) else Kind.DERIVED


def _interval(low: int | None, high: int | None, kind: TimeKind) -> str:
    if low is None and high is None:
        return "free"
    if low is None or high is None:
        return f"≤ {signed(high or 0, kind)}" if low is None else f"≥ {signed(low, kind)}"
    if low == high:
        return signed(low, kind)
    return f"± {signed(high, kind)}" if low == -high else f"{signed(low, kind)} … {signed(high, kind)}"


def signed(value: int, kind: TimeKind) -> str:
    """Return a duration with the sign that printers use.

    >>> signed(-250_000, TimeKind.TIMESTAMP)
    '−250 ms'
    """
    return human(value, kind).replace("-", "−")


def shown(stream: Mapping[str, Any]) -> str:
    """Return a stream's name with that of its relation."""
    alias, relation = str(stream["alias"]), " ".join(str(stream["relation"]).split())
    return alias if alias == relation else f"{alias} = {relation}"


def native(document: Document) -> bool:
    """Return whether Spark's own joins of two run the plan."""
    return bool(document["chosen"]["method"] == "native")


def keeps(document: Document) -> bool:
    """Return whether the plan keeps rows by watermarks of its own."""
    return any(each["streaming"] for each in document["streams"]) and not native(document)


def retention(document: Document, entry: Mapping[str, Any]) -> str:
    """Return how long the rows of a stage's input are kept, empty where nothing is."""
    if not keeps(document) or not entry["kept_for"]:
        return ""
    first = entry["members"][0]
    column = next(each["event_time"] for each in document["streams"] if each["alias"] == first)
    joined = len(entry["members"]) > 1
    time = f"{first}.{column}" if joined else column
    kind = time_kind(document)
    endless = [other for other, bound in entry["kept_for"].items() if bound is None]
    groups: dict[int, list[str]] = {}
    for other, bound in entry["kept_for"].items():
        if bound is not None:
            groups.setdefault(bound, []).append(other)
    limits = [f"{listed(others)} passes {_moved(time, bound, kind)}" for bound, others in groups.items()]
    limits = ["the watermark of " + " and of ".join(limits)] if limits else []
    limits += [f"{other} ends" for other in endless]
    # Its other members may allow less.
    return f"kept until {'at the latest ' if joined else ''}{listed(limits)}"


def _moved(time: str, bound: int, kind: TimeKind) -> str:
    if bound == 0:
        return time
    # No line is to break here.
    return f"{time} {'−' if bound < 0 else '+'} {human(abs(bound), kind)}".replace(" ", "\u00a0")


def orders(stage: Mapping[str, Any]) -> Iterator[str]:
    """Yield in which order new rows of a stage's inputs meet the others."""
    if not stage["order"] and len(stage["inputs"]) > 2:
        yield "new rows meet the smallest input first"
    for first, *others in stage["order"] if len(stage["inputs"]) > 2 else ():
        yield f"new rows of {first} meet {', then '.join(others)}"


def parts(document: Document, stage: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of a stage of ours: name, value and meaning."""
    if native(document):
        return
    for name in ("bounds", "route", "kernel", "shipping"):
        yield name, stage[name], MEANINGS.get((name, stage[name]), "")
    if len(alternatives(document)) > 1:
        passes = document["chosen"]["passes"]
        yield "passes", passes, MEANINGS.get(("passes", passes), "")


def input_words(entry: Mapping[str, Any]) -> str:
    """Return an input of a stage and its key."""
    key = f"key {', '.join(entry['key'])}" if entry["key"] else "no key"
    return f"{', '.join(entry['members'])}: {key}"


def after_stages(document: Document) -> list[Mapping[str, Any]]:
    """Return the static relations that Spark joins after the stages."""
    staged = {name for stage in document["stages"] for each in stage["inputs"] for name in each["members"]}
    staged = staged or {name["alias"] for name in _alone(document)}
    return [each for each in document["streams"] if each["alias"] not in staged]


def _alone(document: Document) -> list[Mapping[str, Any]]:
    """Return the one relation of a plan without stages."""
    return sorted(document["streams"], key=lambda each: not each["streaming"])[:1]
