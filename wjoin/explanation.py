"""What EXPLAIN returns: a text that can also be a document, a drawing, or a page in a notebook."""

import json
from collections.abc import Sequence
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.planner.explain import FORMATS
from wjoin.planner.explain.dot import dot
from wjoin.planner.explain.page import fragment, page


class Explanation(str):
    """How a statement is planned, as text; ``documents`` has one for each of its W-joins, innermost first."""

    documents: tuple[dict[str, Any], ...]

    def __new__(cls, text: str, documents: Sequence[dict[str, Any]] = ()) -> "Explanation":
        """Return a text with the documents that it was made of."""
        made = super().__new__(cls, text)
        made.documents = tuple(documents)
        return made

    def rendered(self, form: str) -> str:
        """Return the explanation in one of FORMATS. Raises WJoinError WJ606 for another."""
        return str(self) if form == "text" else render(self.documents, form)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return fragment(self.documents)


def render(documents: Sequence[dict[str, Any]], form: str) -> str:
    """Return documents as ``json`` (an object, a list where they are several), ``html`` or ``dot``.

    Raises WJoinError WJ606 for another format.
    """
    if form == "json":
        return json.dumps(documents[0] if len(documents) == 1 else list(documents), indent=2)
    if form == "html":
        return page(documents, "EXPLAIN")
    if form == "dot":
        return "\n".join(map(dot, documents))
    raise WJoinError("WJ606", f"EXPLAIN has no format {form}", help=f"known: {', '.join(FORMATS)}")
