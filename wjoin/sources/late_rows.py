"""LATE ROWS INTO: what late rows have besides the columns of their stream, and where they lie in a sink."""

from collections.abc import Iterable
from dataclasses import replace

from wjoin.executor.late_rows import LATE_BY, MICRO_BATCH
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.sources.catalog import Catalog, SinkDeclaration
from wjoin.sources.format_options import FILE_FORMATS, own_option, without

LATE_FOR = "late_for"
"""The column with the name of the query that has dropped a late row."""

BESIDE = (LATE_BY, LATE_FOR, MICRO_BATCH)
"""The columns of late rows besides those of their stream."""


def refuse_columns(stream: str, columns: Iterable[str], span: Span | None = None) -> None:
    """Refuse late rows of a stream that has a column of a name that they have besides: WJoinError WJ623."""
    taken = next((each for each in columns if each.lower() in BESIDE), None)
    if taken is not None:
        message = f"late rows have a column {taken.lower()} besides those of {stream}, which has one itself"
        raise WJoinError("WJ623", message, span=span, help="rename the column of the stream")


def refuse_late_sink(catalog: Catalog, sink: SinkDeclaration, span: Span) -> None:
    """Refuse to insert into a sink that has late rows: WJoinError WJ623."""
    for stream in catalog.streams.values():
        if stream.late_into.lower() == sink.name.lower():
            message = f"{sink.name} is for late rows of {stream.name}, so no statement inserts into it"
            raise WJoinError("WJ623", message, span=span, help="CREATE SINK another one for either of them")


def of_query(sink: SinkDeclaration, query: str) -> SinkDeclaration:
    """Return a sink as a query writes late rows into it: each has a folder of files to itself.

    Spark's log of such a folder numbers the micro-batches of one query.
    """
    path = own_option(sink.options, "path")
    if sink.provider.lower() not in FILE_FORMATS or path is None:
        return sink
    return in_folder(sink, f"{LATE_FOR}={_escaped(query)}")


def in_folder(sink: SinkDeclaration, name: str) -> SinkDeclaration:
    """Return a sink of files as one in a folder below its own."""
    path = f"{(own_option(sink.options, 'path') or '').rstrip('/')}/{name}"
    return replace(sink, options={**without(sink.options, "path"), "path": path})


def _escaped(name: str) -> str:
    """Return a name as Spark has it in the folder of a partition."""
    plain = (each.isalnum() or each in "-_." or ord(each) > 127 for each in name)
    return "".join(each if kept else f"%{ord(each):02X}" for each, kept in zip(name, plain, strict=True))
