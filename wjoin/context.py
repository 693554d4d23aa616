"""What the statements of a session run with."""

from dataclasses import dataclass

from wjoin.queries.session_queries import Queries
from wjoin.settings.session import Settings
from wjoin.sources.catalog import Catalog
from wjoin.spark.engine import Engine


@dataclass(frozen=True)
class Context:
    """Spark, what has been declared and set, and the queries that run; a statement takes what it needs."""

    engine: Engine
    catalog: Catalog
    settings: Settings
    queries: Queries
