"""The table of contents of a worker's state: a plain, versioned value."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass

from wjoin.executor.sites.ranges import HeldRows, decode_held
from wjoin.executor.state.identity import STATE_FORMAT, refuse_format, refuse_workers
from wjoin.executor.state.slices import Slice, decode_slice
from wjoin.executor.state.stored import whole
from wjoin.executor.state.writing import Writing, decode_writing
from wjoin.grammar.errors import WJoinError

Elsewhere = tuple[HeldRows, ...]
"""What the state knows of the rows of an input that are not in it."""

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
    """

    plan: str
    workers: int
    written: int
    seen: dict[int, int]
    slices: tuple[tuple[Slice, ...], ...]
    writing: Writing | None = None
    held: tuple[Elsewhere, ...] = ()

    @classmethod
    def fresh(cls, plan: str, workers: int, inputs: int) -> "Manifest":
        """Return the manifest of a worker that keeps nothing yet."""
        return cls(plan, workers, 0, {}, ((),) * inputs)

    def encode(self) -> bytes:
        """Return the manifest as JSON with the number of the state format."""
        body = {
            "format": STATE_FORMAT,
            "plan": self.plan,
            "workers": self.workers,
            "written": self.written,
            "seen": {str(stream): time for stream, time in self.seen.items()},
            "slices": [[asdict(each) for each in group] for group in self.slices],
            "writing": None if self.writing is None else self.writing.encode(),
            "held": [[list(astuple(each)) for each in group] for group in self.held],
        }
        return json.dumps(body, separators=(",", ":")).encode()


def written_by(data: bytes) -> tuple[str, int]:
    """Return the fingerprint of the stage that a manifest is of, and the number of its workers.

    Raises WJoinError WJ701 for another state format.
    """
    with _readable():
        body = json.loads(data)
        refuse_format(body["format"])
        return str(body["plan"]), whole(body["workers"])


def listed_slices(data: bytes) -> tuple[int, list[Slice]]:
    """Return how many slices a worker has ever written, and those that its manifest lists.

    Raises WJoinError WJ701 for another state format.
    """
    with _readable():
        body = json.loads(data)
        refuse_format(body["format"])
        return whole(body["written"]), [decode_slice(each) for group in body["slices"] for each in group]


def decode_manifest(data: bytes, plan: str, workers: int) -> Manifest:
    """Read a manifest that a worker of ``plan`` with ``workers`` workers wrote.

    Raises WJoinError WJ701, WJ702 or WJ703 where the checkpoint is of another state format,
    another statement or another number of workers.
    """
    with _readable():
        body = json.loads(data)
        refuse_format(body["format"])
        if body["plan"] != plan:
            raise WJoinError("WJ702", "the checkpoint was written by another statement or another plan of it")
        refuse_workers(body["workers"], workers)
        return Manifest(
            plan,
            workers,
            whole(body["written"]),
            {int(stream): whole(time, least=None) for stream, time in body["seen"].items()},
            tuple(tuple(decode_slice(each) for each in group) for group in body["slices"]),
            None if body["writing"] is None else decode_writing(body["writing"]),
            tuple(tuple(decode_held(each) for each in group) for group in body["held"]),
        )


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Refuse what is no manifest: whoever may write into a checkpoint may have put there what they like."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"the table of contents of a worker's state cannot be read: {type(error).__name__}"
        raise WJoinError("WJ701", message, help=_DAMAGED) from error
