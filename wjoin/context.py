"""What the statements of a session run with."""

from dataclasses import dataclass

from wjoin.catalog import Catalog
from wjoin.engine import Engine
from wjoin.queries import Queries
from wjoin.settings import Settings


@dataclass(frozen=True)
class Context:
    """Spark, what has been declared and set, and the queries that run; a statement takes what it needs."""

    engine: Engine
    catalog: Catalog
    settings: Settings
    queries: Queries
