"""Places in a statement's text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A half-open range of character offsets into the source text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the piece of ``text`` that this span marks."""
        return text[self.start : self.end]

    def cover(self, other: "Span") -> "Span":
        """Return the smallest span that holds both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and column of a character offset.

    >>> line_and_column("a\\nbc", 3)
    (2, 2)
    """
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
