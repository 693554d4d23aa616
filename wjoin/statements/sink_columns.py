"""The columns of a sink's rows, compared with those of the rows that it has from an earlier statement."""

from pyspark.sql import DataFrame

from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.measured.begun import Columns
from wjoin.measured.kept import Kept
from wjoin.sources.catalog import SinkDeclaration
from wjoin.spark.notices import warn

_BY_NAME = frozenset({"parquet", "orc", "json", "avro", "xml"})
"""Formats of files whose columns have names."""

_BY_PLACE = frozenset({"csv", "text"})
"""Formats of files whose columns are told apart by their order."""


def columns_of(rows: DataFrame) -> Columns:
    """Return the columns of rows; whether they can be NULL is left out."""
    return {each.name: each.dataType.simpleString() for each in rows.schema}


def refuse_columns(sink: SinkDeclaration, rows: DataFrame, kept: Kept) -> None:
    """Compare the columns of rows for a sink of files with those of the rows that it has.

    Warns (WJ820) where a reader must be told of both. Raises WJoinError WJ702 where no reader could tell them
    apart.
    """
    known = None if kept.begun_with is None else kept.begun_with.sink(sink.name)
    format = sink.provider.lower()
    if known is None or format not in _BY_NAME | _BY_PLACE:
        return
    before, now = known.columns, columns_of(rows)
    other = next((name for name, kind in now.items() if before.get(name, kind) != kind), None)
    remedy = "insert into a new sink with a folder of its own"
    if other is not None:
        message = f"the files of {sink.name} have {other} as {before[other]}, this statement has {now[other]}"
        raise WJoinError("WJ702", message, help=f"CAST it, or {remedy}")
    if format in _BY_PLACE and list(before) != list(now):
        message = f"the {format} files of {sink.name} have {', '.join(before)}, this statement has "
        raise WJoinError("WJ702", message + ", ".join(now), help=f"keep the columns, or {remedy}")
    if set(before) != set(now):
        message = (
            f"the files of {sink.name} so far have the columns {', '.join(before)}, those from now on "
            f"{', '.join(now)}"
        )
        warn(WJoinWarning("WJ820", message))
