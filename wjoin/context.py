"""What the statements of a session run with."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from wjoin.grammar.spans import Span
from wjoin.queries.session_queries import Queries
from wjoin.settings.parameters import check_values
from wjoin.settings.session import Settings
from wjoin.sources.catalog import Catalog
from wjoin.spark.engine import Engine
from wjoin.spark.failures import placed


@dataclass(frozen=True)
class Context:
    """Spark, what has been declared and set, and the queries that run."""

    engine: Engine
    catalog: Catalog
    settings: Settings
    queries: Queries

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
