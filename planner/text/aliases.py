"""Aliases of streams in pieces of SQL."""

from wjoin.grammar.tokens import is_name, scan, unquoted
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.scope import quoted_if_needed


def renamed(text: str, old: str, new: str) -> str:
    """Return an expression with another alias of its stream.

    >>> renamed("A.x > 3 AND A.a = 'A.x'", "a", "B")
    "B.x > 3 AND B.a = 'A.x'"
    """
    tokens = scan(text)
    edits = [
        Edit(token.start, token.end, quoted_if_needed(new))
        for place, token in enumerate(tokens[:-1])
        if is_name(token)
        and tokens[place + 1].text == "."
        and (place == 0 or tokens[place - 1].text != ".")
        and unquoted(token.text).lower() == old.lower()
    ]
    return apply_edits(text, edits)
