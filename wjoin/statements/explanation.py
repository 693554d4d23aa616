"""What EXPLAIN returns: a text that can also be a document, a drawing, or a page in a notebook."""

import json
from collections.abc import Sequence
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import plain
from wjoin.planner.explain import FORMATS
from wjoin.planner.explain.document import Document
from wjoin.planner.explain.page import fragment, page


class Explanation(str):
    """How a statement is planned, as text; ``described`` has each of its W-joins, innermost first.

    ``busy``: how busy its query was when that was last measured, in words; empty where that is not known.
    """

    described: tuple[Document, ...]
    busy: str

    def __new__(cls, text: str, described: Sequence[Document] = (), busy: str = "") -> "Explanation":
        """Return a text with the documents that it was made of."""
        made = super().__new__(cls, text)
        made.described, made.busy = tuple(described), busy
        return made

    @property
    def documents(self) -> tuple[dict[str, Any], ...]:
        """The documents as plain data, as they are in JSON."""
        return tuple(map(plain, self.described))

    def rendered(self, form: str) -> str:
        """Return the explanation in one of FORMATS. Raises WJoinError WJ606 for another."""
        return str(self) if form == "text" else render(self.described, form)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return fragment(self.described)


def render(documents: Sequence[Document], form: str) -> str:
    """Return documents as ``json`` (an object, a list where they are several) or ``html``.

    Raises WJoinError WJ606 for another format.
    """
    if form == "json":
        found = [plain(each) for each in documents]
        return json.dumps(found[0] if len(found) == 1 else found, indent=2)
    if form == "html":
        return page(documents, "EXPLAIN")
    raise WJoinError("WJ606", f"EXPLAIN has no format {form}", help=f"known: {', '.join(FORMATS)}")
