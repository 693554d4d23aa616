"""Edits of the source text: the user's SQL is spliced, never written anew."""

from collections.abc import Iterable
from dataclasses import dataclass

from wjoin.grammar.spans import Span


@dataclass(frozen=True, order=True)
class Edit:
    """``text`` takes the place of the source from ``start`` to ``end`` (equal: an insertion)."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit], span: Span | None = None) -> str:
    """Return ``text``, or the piece ``span`` of it, with the edits that lie inside applied.

    >>> apply_edits("SELECT x FROM t", [Edit(7, 7, "A.")], Span(7, 8))
    'A.x'
    """
    whole = span or Span(0, len(text))
    pieces = []
    place = whole.start
    for edit in sorted(edits):
        if edit.start < whole.start or edit.end > whole.end:
            continue
        if edit.start < place:
            raise ValueError(f"edits overlap at {edit.start}")
        pieces += [text[place : edit.start], edit.text]
        place = edit.end
    return "".join([*pieces, text[place : whole.end]])


def place_before(edits: tuple[Edit, ...], place: int) -> int:
    """Return where a place in an edited text stood before the edits."""
    shift = 0
    for edit in edits:
        start = edit.start + shift
        if place < start:
            break
        if place < start + len(edit.text):
            return edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return place - shift
