"""The kinds of joins of two streams, by what becomes of rows without a partner."""

from enum import Enum


class JoinKind(Enum):
    """What a join gives of two FROM items, which have the numbers 0 and 1."""

    INNER = "INNER"
    LEFT = "LEFT OUTER"
    RIGHT = "RIGHT OUTER"
    FULL = "FULL OUTER"
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"

    @property
    def preserved(self) -> frozenset[int]:
        """The items of whose rows it matters whether they have had a partner."""
        return _PRESERVED[self]

    @property
    def optional(self) -> frozenset[int]:
        """The items of which a result need not have a row."""
        return frozenset() if self is JoinKind.INNER else _OPTIONAL[self]

    @property
    def pairs(self) -> bool:
        """Whether two rows that meet are a result."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def alone(self) -> bool:
        """Whether a preserved row without a partner is a result, once it is decided."""
        return self not in (JoinKind.INNER, JoinKind.SEMI)

    def matches(self, first: bool, second: bool) -> bool:
        """Return whether the items have met in a result that has a row of the first, of the second one."""
        return (first or 1 not in self.preserved) and (second or 0 not in self.preserved)

    @property
    def one_sided(self) -> bool:
        """Whether results have the columns of the first item only."""
        return not self.pairs


_PRESERVED = {
    JoinKind.INNER: frozenset[int](),
    JoinKind.LEFT: frozenset({0}),
    JoinKind.RIGHT: frozenset({1}),
    JoinKind.FULL: frozenset({0, 1}),
    JoinKind.SEMI: frozenset({0}),
    JoinKind.ANTI: frozenset({0}),
}

_OPTIONAL = {
    JoinKind.LEFT: frozenset({1}),
    JoinKind.RIGHT: frozenset({0}),
    JoinKind.FULL: frozenset({0, 1}),
    JoinKind.SEMI: frozenset({1}),
    JoinKind.ANTI: frozenset({1}),
}

KINDS = {
    ("LEFT",): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT",): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL",): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("SEMI",): JoinKind.SEMI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("ANTI",): JoinKind.ANTI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
    ("INNER",): JoinKind.INNER,
    ("CROSS",): JoinKind.INNER,
    (): JoinKind.INNER,
}
"""The kinds by the words before JOIN."""
