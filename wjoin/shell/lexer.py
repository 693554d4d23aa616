"""The colours of statements while they are typed: those of Pygments for SQL, and wjoin's words among them."""

from collections.abc import Iterator
from typing import Any

from pygments.lexers.sql import SqlLexer
from pygments.token import Keyword, Name

from wjoin.shell.words import KEYWORDS


class StatementLexer(SqlLexer):  # type: ignore[misc]  # Pygments has no types
    """Knows Spark's and wjoin's keywords."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Yield the place, the kind and the text of each token."""
        for place, kind, token in super().get_tokens_unprocessed(text):
            yield place, Keyword if kind in Name and token.upper() in KEYWORDS else kind, token
