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
    ASOF = "ASOF"
    LEFT_ASOF = "LEFT ASOF"

    @property
    def words(self) -> str:
        """The kind as errors and EXPLAIN name it.

        >>> JoinKind.ASOF.words, JoinKind.LEFT.words
        ('an ASOF JOIN', 'a LEFT OUTER JOIN')
        """
        return f"a{'n' if self.value[0] in 'AI' else ''} {self.value} JOIN"

    @property
    def asof(self) -> bool:
        """Whether a row of the first item is joined to one row of the second: the nearest in time."""
        return self in (JoinKind.ASOF, JoinKind.LEFT_ASOF)

    @property
    def preserved(self) -> frozenset[int]:
        """The items of whose rows it matters whether they have had a partner."""
        return _PRESERVED[self]

    @property
    def optional(self) -> frozenset[int]:
        """The items of which a result need not have a row, or has one that the join has chosen.

        What WHERE says of them is tested after the join.
        """
        return frozenset() if self is JoinKind.INNER else _OPTIONAL[self]

    @property
    def pairs(self) -> bool:
        """Whether two rows that meet are a result."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def alone(self) -> bool:
        """Whether a preserved row without a partner is a result, once it is decided."""
        return self not in (JoinKind.INNER, JoinKind.SEMI, JoinKind.ASOF)

    def matches(self, first: bool, second: bool) -> bool:
        """Return whether the items have met in a result that has a row of the first, of the second one."""
        return (first or 1 not in self.preserved) and (second or 0 not in self.preserved)

    @property
    def waits(self) -> bool:
        """Whether rows of some item wait until they are decided, to be results then."""
        return self.alone or self.asof

    @property
    def one_sided(self) -> bool:
        """Whether results have the columns of the first item only."""
        return not self.pairs


class Nearest(Enum):
    """Which row an ASOF JOIN takes: ``first.time operator second.time``, or the nearest on either side."""

    AT_OR_BEFORE = ">="
    BEFORE = ">"
    AT_OR_AFTER = "<="
    AFTER = "<"
    EITHER = "NEAREST"


_PRESERVED = {
    JoinKind.INNER: frozenset[int](),
    JoinKind.LEFT: frozenset({0}),
    JoinKind.RIGHT: frozenset({1}),
    JoinKind.FULL: frozenset({0, 1}),
    JoinKind.SEMI: frozenset({0}),
    JoinKind.ANTI: frozenset({0}),
    JoinKind.ASOF: frozenset[int](),
    JoinKind.LEFT_ASOF: frozenset({0}),
}

_OPTIONAL = {
    JoinKind.LEFT: frozenset({1}),
    JoinKind.RIGHT: frozenset({0}),
    JoinKind.FULL: frozenset({0, 1}),
    JoinKind.SEMI: frozenset({1}),
    JoinKind.ANTI: frozenset({1}),
    JoinKind.ASOF: frozenset({1}),
    JoinKind.LEFT_ASOF: frozenset({1}),
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
    ("ASOF",): JoinKind.ASOF,
    ("INNER", "ASOF"): JoinKind.ASOF,
    ("LEFT", "ASOF"): JoinKind.LEFT_ASOF,
    ("LEFT", "OUTER", "ASOF"): JoinKind.LEFT_ASOF,
    ("INNER",): JoinKind.INNER,
    ("CROSS",): JoinKind.INNER,
    (): JoinKind.INNER,
}
"""The kinds by the words before JOIN."""
