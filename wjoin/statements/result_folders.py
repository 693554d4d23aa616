"""Folders of results: whether they are those of the query of a checkpoint."""

from pyspark.sql import SparkSession

from wjoin.grammar.errors import WJoinError
from wjoin.measured.beside import exists
from wjoin.sources.catalog import SinkDeclaration
from wjoin.sources.format_options import FILE_FORMATS, own_option
from wjoin.spark.process import resolved

_DELTA = "delta"
"""The format whose sink knows by a query's identity which micro-batches it has: others may write as well."""


def refuse_folder(
    spark: SparkSession, sink: SinkDeclaration, folder: str, *, begun: bool, committed: bool
) -> None:
    """Refuse a folder of results that is not of the query of a checkpoint.

    ``begun``: whether the query has begun to write into the sink, ``committed``: a micro-batch of it is.
    Spark's file sink numbers what it writes by micro-batch and leaves out what it has already, so
    the first results of a query with a new checkpoint would be lost. Raises WJoinError WJ609 and WJ611.
    """
    name = sink.name
    path = resolved(own_option(sink.options, "path") or "").rstrip("/")
    format = sink.provider.lower()
    # The folder alone may come of a query that Spark refused to start.
    log = "_delta_log/*.json" if format == _DELTA else "_spark_metadata/[0-9]*"
    written = path and exists(spark, f"{path}/{log}")
    if written and not begun and format != _DELTA:
        message = f"the folder of {name}, {path}, holds the output of another query, and {folder} is new"
        raise WJoinError("WJ609", message)
    if path and not written and format in {*FILE_FORMATS, _DELTA} and committed:
        message = (
            f"the folder of {name}, {path}, is missing or empty, but the checkpoint "
            f"{folder} says that its results were written"
        )
        remedy = f"restore the folder, or delete {folder} as well to write everything again"
        raise WJoinError("WJ611", message, help=remedy)
