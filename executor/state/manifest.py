"""The table of contents of a worker's state: a plain, versioned value."""

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from wjoin.executor.sites.ranges import HeldRows
from wjoin.executor.state.identity import STATE_FORMAT, refuse_format, refuse_workers
from wjoin.executor.state.slices import Slice
from wjoin.executor.state.writing import Writing, refuse_rules
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import plain, typed

Elsewhere = tuple[HeldRows, ...]
"""What the state knows of the rows of an input that are not in it."""

_REMEMBERED = 16
"""Manifests that a process does not read again: each is needed in the micro-batches after it, too."""

_DAMAGED = "put the checkpoint back from a copy, or start from a new one, and a new folder for the results"


@dataclass(frozen=True)
class Manifest:
    """What one worker of one stage keeps: event times seen and the slices of each input.

    ``plan`` is the fingerprint of the stage's identity, ``workers`` how many workers share
    the stage; both must stay the same for the life of a checkpoint. ``written`` counts the slices
    ever written.

    Slices are named by that count, so that an attempt that is repeated writes the same slices
    under the same names: after a crash Spark may keep what the first attempt wrote of a version
    and go on from what the second one holds. ``writing`` are the rules by which the next micro-batch
    writes its slices, None before the first. ``held`` is what each input has at sites, empty where none has.
    ``histories`` are the sinks for which the worker has made the results among the rows that it had before.
    ``marks`` are, by the name of a slice, the marks of its rows where some have one (``executor.partners``).
    ``came``: by stream the clock when its last row came, where one may be silent (``executor.silence``).
    ``counted``: the slices of results that wait for windows of rows, and of what these count
    (``executor.uncounted``). ``node``: the slice with what it tells other nodes of an approximate join
    (``executor.nodes``).
    """

    plan: str
    workers: int
    written: int
    seen: dict[int, int]
    slices: tuple[tuple[Slice, ...], ...]
    writing: Writing | None = None
    held: tuple[Elsewhere, ...] = ()
    histories: tuple[str, ...] = ()
    marks: dict[str, Slice] = field(default_factory=dict)
    came: dict[int, int] = field(default_factory=dict)
    counted: tuple[tuple[Slice, ...], ...] = ()
    node: Slice | None = None

    @classmethod
    def fresh(cls, plan: str, workers: int, inputs: int) -> "Manifest":
        """Return the manifest of a worker that keeps nothing yet."""
        return cls(plan, workers, 0, {}, ((),) * inputs)

    def encode(self) -> bytes:
        """Return the manifest as JSON with the number of the state format."""
        body = plain(self)
        for name in ("marks", "came", "counted", "node"):
            if not body[name]:
                del body[name]
        for rule in _rules(body):
            if not rule["until"]:
                del rule["until"]
        return json.dumps({"format": STATE_FORMAT, **body}, separators=(",", ":")).encode()

    def __post_init__(self) -> None:
        if self.written < 0:
            raise ValueError("fewer than no slices")

    @property
    def all_slices(self) -> tuple[Slice, ...]:
        """The slices of all inputs, the marks of their rows, and what waits for windows of rows."""
        told = () if self.node is None else (self.node,)
        return (*itertools.chain(*self.slices, *self.counted), *self.marks.values(), *told)


def written_manifest(data: bytes) -> Manifest:
    """Read a manifest that a worker of any stage wrote.

    Raises WJoinError WJ701 for another state format, and for what is none.
    """
    with _readable():
        return _manifest(data)


def decode_manifest(data: bytes, fingerprint: str, workers: int) -> Manifest:
    """Read a manifest that a worker of a stage with so many workers wrote.

    Raises WJoinError WJ701, WJ702 or WJ703 where the checkpoint is of another state format,
    another statement or another number of workers.
    """
    with _readable():
        found = _manifest(data)
    if found.plan != fingerprint:
        raise WJoinError("WJ702", "the checkpoint was written by another statement or another plan of it")
    refuse_workers(found.workers, workers)
    return found


@lru_cache(maxsize=_REMEMBERED)
def _manifest(data: bytes) -> Manifest:
    body: dict[str, Any] = json.loads(data)
    refuse_format(body.pop("format"))
    if body["writing"] is not None:
        refuse_rules(body["writing"]["version"])
    # A state that was begun before there were these lacks them.
    for rule in _rules(body):
        rule.setdefault("until", [])
    found = typed(Manifest, {"histories": [], "marks": {}, "came": {}, "counted": [], "node": None, **body})
    for each in found.all_slices:
        each.check()
    return found


def _rules(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield how long the rows of all inputs are kept."""
    return itertools.chain.from_iterable(body["writing"]["retentions"] if body["writing"] else ())


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Refuse what is no manifest: whoever may write into a checkpoint may have put there what they like."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"the table of contents of a worker's state cannot be read: {type(error).__name__}"
        raise WJoinError("WJ701", message, help=_DAMAGED) from error
