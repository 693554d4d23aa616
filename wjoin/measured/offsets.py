"""Offsets of sources, as versions of Spark tell them."""

import ast
import json
from typing import Any


def offsets_of(told: Any) -> dict[str, Any]:
    """Return offsets of a source; versions of Spark tell them as a mapping or as a text of it."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            told = ast.literal_eval(told)
    # Some sources count with a plain number.
    return told if isinstance(told, dict) else {}
