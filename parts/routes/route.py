"""What a route is: the facts by which plans are made and explained, and who gets which rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from wjoin.parts.kernels.runs import Int64Array


class Role(IntEnum):
    """As what a worker gets rows: to keep them for later ones, to begin results with them, or both.

    ``PASSED``: neither; they are beyond what can join, and only counted.
    """

    PASSED = 0
    STORE = 1
    PROBE = 2
    BOTH = 3

    @property
    def stores(self) -> bool:
        """Whether the rows are kept for later ones."""
        return bool(self & Role.STORE)

    @property
    def probes(self) -> bool:
        """Whether the rows begin results."""
        return bool(self & Role.PROBE)


@dataclass(frozen=True)
class Share:
    """Rows for one worker: its number, the numbers of the rows (None for all), and as what it gets them."""

    worker: int
    rows: Int64Array | None
    role: Role = Role.BOTH


class Route(ABC):
    """Which worker stores a row, and which workers it visits; it has no state.

    ``name`` is that of EXPLAIN and of checkpoints; ``meaning`` says it in a picture of the plan.

    Nothing removes a result that is made twice. So for each row of a result exactly one worker that gets the
    row to probe must have those rows of it stored that came before. Rows are told late by each worker that
    they probe: where these are several, by each of them.
    """

    name: str
    meaning: str

    warning = ""
    """What the page of EXPLAIN warns of where a stage has this route."""

    sent = 1.0
    """To how many workers a row goes, on average, as the cost model takes it."""

    kept = 1.0
    """On how many of them it is kept."""

    @abstractmethod
    def applies(self, *, keyed: bool) -> bool:
        """Return whether a stage can have it; ``keyed``: its inputs meet on a key."""

    @abstractmethod
    def workers(self, partitions: int) -> int:
        """Return the number of workers, given the number of shuffle partitions."""

    @abstractmethod
    def shares(self, codes: Int64Array | None, times: Int64Array, workers: int) -> Iterator[Share]:
        """Yield who gets which rows, by their key codes (None without a key) and event times, both int64.

        It must follow from these alone: Spark may repeat a task whose rows then come in another order.
        """
