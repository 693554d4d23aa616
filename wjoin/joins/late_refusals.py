"""Late rows that go to a sink: which window joins cannot bring them there."""

from collections.abc import Collection, Iterator, Sequence

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.joins.delays import views_in
from wjoin.joins.from_items import FromSource
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.sources.catalog import Catalog, StreamDeclaration

WITHOUT_LATE_ROWS = "declare the stream once more without LATE ROWS INTO, and read that one"
"""What else can be done where late rows cannot go to a sink."""


def told_streams(sources: Sequence[FromSource]) -> Iterator[str]:
    """Yield the names, lower case, of the streams among the FROM items of a join whose late rows are told."""
    for each in sources:
        if each.declared is not None and each.declared.late_into:
            yield each.declared.name.lower()


def refuse_lost(
    catalog: Catalog, plan: PhysicalPlan, sources: Sequence[FromSource], told: Collection[str] = ()
) -> None:
    """Refuse a window join that drops late rows where they cannot be told: WJoinError WJ623.

    ``told``: the names, lower case, of streams whose late rows the joins tell whose results it reads.
    """
    wanted = {name: each for name, each in catalog.streams.items() if each.late_into}
    if not wanted or not plan.streaming or not plan.stages:
        return
    for number, source in enumerate(sources):
        if not plan.streams[number].streaming:
            continue
        if source.declared is not None and source.declared.late_into:
            if plan.method is Method.NATIVE:
                span, remedy = source.item.span, "leave PLAN(NATIVE) out"
                raise _refused(source.declared, "Spark's own joins drop them", remedy, span)
            continue
        for name in sorted(views_in(source.frame) & wanted.keys() - set(told)):
            why = "here it is read through a view, a subquery, or under WITH"
            raise _refused(wanted[name], why, f"name {wanted[name].name} itself in FROM", source.item.span)


def refuse_unwritten(plan: PhysicalPlan, sources: Sequence[FromSource]) -> None:
    """Refuse a window join whose late rows nobody writes: WJoinError WJ623."""
    for number in plan.telling if plan.stages else ():
        declared = sources[number].declared
        if declared is not None:
            why = "only an INSERT INTO, or a statement set, writes them there"
            raise _refused(declared, why, "write INSERT INTO a sink", sources[number].item.span)


def _refused(stream: StreamDeclaration, why: str, remedy: str, span: Span) -> WJoinError:
    message = f"late rows of {stream.name} go to the sink {stream.late_into}, but {why}"
    return WJoinError("WJ623", message, span=span, help=f"{remedy}, or {WITHOUT_LATE_ROWS}")
