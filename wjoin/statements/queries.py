"""The statements about running queries: they show them, tell what one is and does, and stop it."""

from collections.abc import Iterator

from pyspark.sql import DataFrame

from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import DescribeQuery, ShowQueries, StopQuery
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import Identifier
from wjoin.measured.followed import settle
from wjoin.measured.kept_streams import kept_streams, longer_windows
from wjoin.measured.progress import time_text
from wjoin.queries.running import Running
from wjoin.queries.session_queries import Queries

STOPPED_SCHEMA = "query STRING, done STRING"
"""The columns of what STOP QUERY answers."""


def show_queries(asked: Asked, _: ShowQueries) -> DataFrame:
    """Return a row for each query that the session knows, oldest first; ended ones are among them."""
    rows = []
    for each in asked.queries.known:
        each.followed.look()
        newest, total = each.totals.newest, each.totals.total
        rows.append(
            (
                each.name,
                each.state,
                each.started,
                newest.batch if newest is not None else None,
                total.rows_read,
                newest.rows_per_second if newest is not None else None,
                total.matches,
                total.rows_of_state if newest is not None else None,
                sum(total.late.values()),
            )
        )
    return asked.engine.rows(
        rows,
        "name STRING, state STRING, started TIMESTAMP, batch BIGINT, rows_in BIGINT, rows_per_second DOUBLE, "
        "matches BIGINT, state_rows BIGINT, late BIGINT",
    )


def describe_query(asked: Asked, statement: DescribeQuery) -> DataFrame:
    """Return what a query is and does. Raises WJoinError WJ602."""
    running = find_query(asked.queries, statement.name)
    running.followed.look()
    rows = [
        ("name", running.name),
        ("state", running.state),
        ("id", str(running.query.id)),
        ("started", running.started.isoformat(sep=" ", timespec="seconds")),
        ("sink", running.sink),
        ("checkpoint", running.checkpoint),
        ("done", running.done()),
        *_newest(running),
        *_state(running),
        *(("plan", each.chosen.plan) for each in running.documents()),
        ("statement", running.written),
    ]
    if (failed := running.failed) is not None:
        rows.append(("error", str(failed)))
    return asked.engine.rows([row for row in rows if row[1] is not None], "property STRING, value STRING")


def _newest(running: Running) -> list[tuple[str, str | None]]:
    """Return what the newest micro-batch tells."""
    newest, total = running.totals.newest, running.totals.total
    if newest is None:
        return []
    rows: list[tuple[str, str | None]] = [
        ("micro-batch", f"{newest.batch}, {newest.seconds:.1f} s, {newest.rows_per_second:,.0f} rows/s"),
        ("kept", f"{total.rows_of_state:,} rows, {total.bytes_of_state / 1e6:,.1f} MB"),
    ]
    rows += [(f"watermark of {alias}", time_text(time)) for alias, time in newest.watermarks.items()]
    rows += [(f"lag of {alias}", f"{seconds:,.1f} s") for alias, seconds in newest.lag.items()]
    return rows


def _state(running: Running) -> Iterator[tuple[str, str]]:
    """Yield what its W-joins keep, by stream."""
    for each in running.planned:
        found = kept_streams(each, running.totals.total)
        yield from ((f"state of {kept.alias}", kept.words(each)) for kept in found)
        yield from (("with longer windows", line) for line in longer_windows(each, found))


def stop_query(asked: Asked, statement: StopQuery) -> DataFrame:
    """Stop a query, and return what it has done. Raises WJoinError WJ602.

    Its micro-batch is broken off: the next start from its checkpoint does it again.
    """
    running = find_query(asked.queries, statement.name)
    running.followed.look()
    running.stop()
    settle()
    return asked.engine.rows([(running.name, running.done())], STOPPED_SCHEMA)


def find_query(queries: Queries, name: Identifier, elsewhere: str = "") -> Running:
    """Return the newest query of a name, one that runs before one that has ended. Raises WJoinError WJ602.

    ``elsewhere``: what to write for a query of another session.
    """
    named = [each for each in queries.known if name.matches(each.name)]
    if named:
        return max(named, key=lambda each: (each.query.isActive, each.began))
    known = {each.name.lower(): each for each in queries.known}
    listed = "SHOW QUERIES lists those of this session" if known else ""
    help = suggestion(name.name, known) or "; ".join(filter(None, (listed, elsewhere))) or None
    raise WJoinError("WJ602", f"there is no query {name.name}", span=name.span, help=help)
