"""What stands behind the names in a condition that is read as a tree."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from wjoin.planner.text.scope import StreamColumn


@dataclass(frozen=True)
class Meaning:
    """``column``: the whole column that a name means, None where it means none; ``function``: the name of a
    call, in lower case; ``parameters``: the values of named parameters."""

    column: Callable[[exp.Column], StreamColumn | None]
    function: Callable[[exp.Anonymous], str]
    parameters: Mapping[str, object]
