"""The statements of peers.py, in the words that wjoin and Flink have in common."""

from collections.abc import Iterator

LEFT = "SELECT A.badge, A.payload AS a, B.payload AS b FROM a A LEFT JOIN b B ON A.badge = B.badge"
"""What outer_joins.py asks of both: windows of this width, in seconds, follow."""

LEFT_WINDOW = 10


def statements(count: int) -> Iterator[tuple[int, str, str]]:
    """Yield window in seconds, SELECT list and condition of each; the first has the widest window."""
    for number in range(count):
        few = " AND MOD(A.badge, 2) = 0" if number >= 5 else ""
        condition = f"A.badge = B.badge AND B.badge = C.badge{few}"
        yield 5 - number % 5, "SELECT A.badge, A.payload AS a, B.payload AS b, C.payload AS c", condition
