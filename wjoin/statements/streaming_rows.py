"""What a DataFrame of a stream answers when it is asked for all of its rows, which never end."""

from functools import partial
from typing import Any, NoReturn

from pyspark.sql import DataFrame

from wjoin.grammar.errors import WJoinError

_ACTIONS = (
    *("collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show", "tail", "take"),
    *("toArrow", "toLocalIterator", "toPandas"),
)
_NOW = "writeStream.format('memory').queryName('seen').trigger(availableNow=True).start().awaitTermination()"


def refuse_actions(rows: DataFrame) -> DataFrame:
    """Return a streaming DataFrame whose actions raise WJ621 in place of Spark's error about writeStream.

    Nothing of Spark's classes is changed, and a DataFrame that is made of this one is Spark's own again.
    """
    for name in _ACTIONS:
        setattr(rows, name, partial(_refuse, name))
    return rows


def _refuse(name: str, *args: Any, **options: Any) -> NoReturn:
    raise WJoinError(
        "WJ621",
        f"{name}() needs all rows of a SELECT over streams, which never ends",
        help="start a query: INSERT INTO a sink, or .writeStream.format('console').start(); for the rows "
        f"that are there now: .{_NOW}, then session.table('seen').{name}()",
    )
