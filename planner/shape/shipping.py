"""How a stream travels from its site: what comes first, and what only the rows of results need.

Semijoin streams, section 4.2: a partial tuple has the time and what the join reads of a row. The full tuple
is asked for where a result has one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from wjoin.grammar.statement_kinds import ROW_NUMBER
from wjoin.grammar.tokens import names_in
from wjoin.planner.catalog import Relation
from wjoin.planner.plan.block_columns import quoted, stored_column
from wjoin.planner.plan.edges import operands
from wjoin.planner.plan.physical import LikelyRows, PhysicalPlan, ScanColumn, Shipping, SiteScan, StreamScan


def with_sites(plan: PhysicalPlan, relations: Sequence[Relation]) -> PhysicalPlan:
    """Return a plan that knows of each stream at a site which of its columns may come late.

    Its edges have no columns yet. Rows then carry their number at the site, and state is the same however
    they have come.
    """
    scans = [
        scan if relation.site is None else _with_site(plan, stream, relation)
        for stream, (scan, relation) in enumerate(zip(plan.streams, relations, strict=True))
    ]
    return replace(plan, streams=tuple(scans))


def shipped(
    plan: PhysicalPlan, ways: Mapping[int, Shipping], likely: Mapping[int, LikelyRows] | None = None
) -> PhysicalPlan:
    """Return a plan whose streams travel in the given ways, by the numbers of those at sites.

    ``likely``: of those of which only such rows come, which these are.
    """
    if not ways:
        return plan
    scans = list(plan.streams)
    for stream, way in ways.items():
        scan = scans[stream]
        if scan.site is not None:
            rows = (likely or {}).get(stream)
            scans[stream] = replace(scan, site=replace(scan.site, shipping=way, likely=rows))
    return replace(plan, streams=tuple(scans))


def _with_site(plan: PhysicalPlan, stream: int, relation: Relation) -> StreamScan:
    scan, site = plan.streams[stream], relation.site
    if site is None or not scan.streaming or stream not in plan.staged:
        return scan
    used = {number for stage in plan.stages for owner, number in operands(plan, stage) if owner == stream}
    named = _words([scan.event_time, *scan.filters, *scan.meets])
    named |= _words(expression for code in scan.codes for expression in code.expressions)
    # Of each row it is told whether it begins a window of rows anew.
    named |= _words(window.condition for window in plan.counted if window.stream == stream)
    # Late rows go to their sink with all columns.
    named |= _words(column.expression for column in scan.late)
    kept = [
        (number, column)
        for number, column in enumerate(scan.columns)
        if number in used or column.output is None or stored_column(plan, stream, number).restored
    ]
    named |= _words(column.expression for _, column in kept)
    late = tuple(
        number
        for number, column in enumerate(scan.columns)
        if column.output is not None and column.output.lower() in site.widths.keys() - named
    )
    known = (each.name for each in relation.columns)
    others = {str(scan.columns[number].output).lower() for number in late}
    read = {str(column.output).lower() for column in (*scan.columns, *scan.late)} | named
    early = tuple(name for name in known if name.lower() in read - others)
    column = ScanColumn(f"{quoted(scan.alias)}.{quoted(ROW_NUMBER)}", "bigint", None)
    return replace(scan, columns=(*scan.columns, column), site=SiteScan(len(scan.columns), late, early))


def _words(expressions: Iterable[str]) -> set[str]:
    """Return every word of some expressions in lower case, the names of columns among them."""
    return {word for expression in expressions for word in names_in(expression)}
