"""How long a sink keeps its results."""

from dataclasses import dataclass

_LEAST = 10_000
"""How long Spark's log names a file at the least (milliseconds): no micro-batch is forgotten as it ends."""


@dataclass(frozen=True)
class Retention:
    """How long results are kept after their commit, and then for those who read them, in milliseconds."""

    time: int
    grace: int

    @property
    def logged(self) -> int:
        """How long Spark's log names a file."""
        return max(self.time + self.grace, _LEAST)
