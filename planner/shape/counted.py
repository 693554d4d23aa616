"""Windows of rows: what is counted for them, and beside what they are not available."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.syntax import Per
from wjoin.planner.catalog import Relation
from wjoin.planner.plan.physical import CountedWindow
from wjoin.planner.plan.stage_kinds import Stage
from wjoin.planner.request import Planning
from wjoin.planner.shape.decompose import DraftInput
from wjoin.planner.shape.join_keys import KeyPart, can_be_key
from wjoin.planner.shape.scans import ScanBuilder
from wjoin.planner.shape.stages_of_joins import equal_parts
from wjoin.planner.windows.closure import RowsTerm


def rows_terms(planning: Planning) -> tuple[RowsTerm, ...]:
    """Return the windows of rows of a block, each once."""
    graph = planning.graph
    chosen = (term for own in graph.rows for each in own for term in each)
    return tuple(dict.fromkeys([*(term for branch in graph.branches for term in branch.counted), *chosen]))


def refuse_uncounted(planning: Planning) -> None:
    """Raise WJ501 for windows of rows beside what they are not available with."""
    terms = rows_terms(planning)
    if not terms:
        return
    bound = planning.bound
    for each in bound.sources:
        if each.number not in planning.static or bound.times[each.number] is None:
            continue
        if own := [term for term in terms if term.stream == each.number]:
            raise _refused(own[0], f"for {each.name}, a table joined with streams", "name a stream")
        if why := _why_latest(planning, each.number):
            remedy = "join it in a statement that reads this one's results"
            reason = f"beside {each.name}, a table with an event time, {why}"
            raise _refused(terms[0], reason, remedy)


def _why_latest(planning: Planning, table: int) -> str:
    """Return why rows of a table, which is joined after the streams, may change what windows of rows count.

    Empty where no row of it is the latest of a combination.
    """
    graph, tree = planning.graph, planning.bound.tree
    if len({branch.counted for branch in graph.branches}) > 1 or any(map(any, graph.rows)):
        return "as its window may be that of another alternative"
    alternatives = [branch.windows for branch in graph.branches]
    if tree.joins:
        number = next(place for place, join in enumerate(tree.joins) if join.item == table)
        given = graph.joins[number + 1] if graph.joins else [branch.given for branch in graph.branches]
        alternatives = [*given]
        missing = tree.missing(number)
        if any(term.stream in missing for term in rows_terms(planning)):
            return "as the stream whose rows are counted may be missing"
    streams = [each for each in range(len(graph.names)) if each not in planning.static]
    bounds = ([windows.between(each, table) for each in streams] for windows in alternatives)
    early = all(any(bound is not None and bound <= 0 for bound in own) for own in bounds)
    return "" if early else "which may be the latest of a combination"


def counted_windows(
    planning: Planning, stages: Sequence[Stage], scans: Sequence[ScanBuilder]
) -> tuple[tuple[CountedWindow, ...], dict[RowsTerm, int]]:
    """Return the windows of rows, and the number of each as it is written.

    Raises WJ501 for PER KEY and PER HOME where rows have none, or one whose values cannot be compared.
    """
    terms = rows_terms(planning)
    made = {each: _counted(planning, each, stages, scans) for each in terms}
    # The state has them in the same order, however the statement is spelled.
    counted = sorted({*made.values()}, key=lambda each: (each.stream, each.rows, each.keys, str(each)))
    return tuple(counted), {term: counted.index(each) for term, each in made.items()}


def asked_of(terms: Iterable[RowsTerm], numbers: Mapping[RowsTerm, int]) -> tuple[int, ...]:
    """Return the numbers of windows of rows."""
    return tuple(sorted({numbers[each] for each in terms}))


def _counted(
    planning: Planning, term: RowsTerm, stages: Sequence[Stage], scans: Sequence[ScanBuilder]
) -> CountedWindow:
    condition = "" if term.landmark is None else planning.bound.landmarks[term.landmark]
    name, scan = planning.bound.sources[term.stream].name, scans[term.stream]
    keys: tuple[int, ...] = ()
    if term.per is Per.KEY:
        keys = tuple(sorted({*_keys(term.stream, stages), *_others(planning, term.stream, scan, stages)}))
        if not keys:
            remedy = f"add one, such as {name}.id = …, or leave PER KEY out"
            raise _refused(term, f"by a key: no equality names {name}", remedy)
    elif term.per is Per.HOME:
        part = scan.home_part
        if part is None:
            relation = planning.request.relations[term.stream]
            what = "no view or subquery" if relation.derived else "nothing"
            raise _refused(
                term, f"by home: {what} tells where the rows of {name} live", home_remedy(relation)
            )
        keys = (scan.code(DraftInput((term.stream,), None, (part,))),)
    if not all(code.exact or code.verify for code in (scan.codes[key] for key in keys)):
        remedy = "compare columns of whole numbers, strings, dates or timestamps"
        reason = f"by this {term.per.value.lower()} of {name}, whose values cannot be compared"
        raise _refused(term, reason, remedy)
    return CountedWindow(term.stream, term.rows, condition, keys, term.per)


def home_remedy(relation: Relation) -> str:
    """Return what to do where nothing tells where the rows of a relation live."""
    if relation.derived:
        return "name the stream itself, and write the conditions into WHERE"
    return "declare its stream with HOME BY column: CREATE STREAM … HOME BY region"


def _keys(stream: int, stages: Sequence[Stage]) -> Iterator[int]:
    """Yield the numbers of the codes by which the rows of a stream meet others."""
    for stage in stages:
        for each in stage.inputs:
            if each.key is not None and each.key[0] == stream:
                yield each.key[1]


def _others(planning: Planning, stream: int, scan: ScanBuilder, stages: Sequence[Stage]) -> Iterator[int]:
    """Yield the numbers of codes of what a stream is joined by that no stage has as a key."""
    known = {part for key in _keys(stream, stages) for part in scan.keys[key]}
    of_classes = (each.part(stream) for each in planning.classes)
    for part in (*of_classes, *_of_tables(planning, stream)):
        if part is not None and part not in known:
            yield scan.code(DraftInput((stream,), None, (part,)))


def _of_tables(planning: Planning, stream: int) -> Iterator[KeyPart]:
    """Yield what a stream of a tree is joined by to tables, which Spark joins after the stages."""
    bound, staged = planning.bound, len(planning.bound.tree.staged.joins)
    for each in planning.equalities if bound.tree.static else ():
        if can_be_key(each.common) and bound.join_of(each.equality) >= staged:
            parts = equal_parts(each)
            yield from (part for part in (parts.left, parts.right) if part.stream == stream)


def _refused(term: RowsTerm, reason: str, remedy: str) -> WJoinError:
    return WJoinError("WJ501", f"a window of rows is not available {reason}", span=term.span, help=remedy)
