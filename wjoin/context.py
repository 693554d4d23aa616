"""What the statements of a session run with."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import HALF_PAIR, scan
from wjoin.queries.session_queries import Queries
from wjoin.settings.settable import Settings
from wjoin.sources.catalog import Catalog
from wjoin.spark.engine import Engine
from wjoin.spark.spark_failures import placed


@dataclass(frozen=True)
class Context:
    """Spark, what has been declared and set, and the queries that run."""

    engine: Engine
    catalog: Catalog
    settings: Settings
    queries: Queries

    @property
    def looked_for(self) -> frozenset[str]:
        """The streams, lower case, whose joins without a window clause may be W-joins; none by a setting."""
        return frozenset(self.catalog.streams) if self.settings.windows_from_where() else frozenset()

    def asked(self, text: str, params: dict[str, Any]) -> "Asked":
        """Return this with a text of statements and the values of their parameters. Raises WJ115."""
        check_values(text, params)
        return Asked(self.engine, self.catalog, self.settings, self.queries, text, params)


@dataclass(frozen=True)
class Asked(Context):
    """What a statement runs with: the whole ``text`` that it is a part of, and the values of ``params``."""

    text: str
    params: dict[str, Any]

    def placed(self, span: Span | None = None) -> AbstractContextManager[None]:
        """Give errors that are raised inside their place (see ``wjoin.spark.failures.placed``)."""
        return placed(self.text, span)


def check_values(text: str, values: object) -> None:
    """Refuse the values of parameters that cannot be sent to Spark. Raises WJoinError WJ115.

    ``values`` are by name, or by position.
    """
    named = values.items() if isinstance(values, Mapping) else enumerate(_listed(values), 1)
    for name, value in named:
        half = _half(name) or _half(value)
        if half is not None:
            places = [token.span for token in scan(text) if token.text == f":{name}"]
            message = f"the value of the parameter {name} has half of a surrogate pair, U+{ord(half):04X}"
            raise WJoinError("WJ115", message, span=places[0] if places else None, text=text)


def _half(value: object) -> str | None:
    """Return the half of a surrogate pair in a value, None where it has none."""
    if isinstance(value, str | PurePath):
        found = HALF_PAIR.search(str(value))
        return found and found[0]
    parts = [*value.keys(), *value.values()] if isinstance(value, Mapping) else _listed(value)
    return next((half for half in map(_half, parts) if half is not None), None)


def _listed(value: object) -> list[object] | tuple[object, ...]:
    return value if isinstance(value, list | tuple) else ()
