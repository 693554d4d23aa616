"""EXPLAIN STATEMENT SET: what the statements of a set share, and what each adds."""

from collections import Counter
from collections.abc import Iterator

from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.grammar.shown import shown_lines
from wjoin.grammar.statement_kinds import StatementSet
from wjoin.homes.homes import keeps_state
from wjoin.joins.set_joins import Taker, run_together
from wjoin.planner.explain.cost import cost_text
from wjoin.planner.explain.kept_state import state_text
from wjoin.planner.explain.text import explain_text
from wjoin.planner.figures import figure, size
from wjoin.planner.planning import PlannedSelect
from wjoin.statements.advice import advice
from wjoin.statements.explanation import Explanation
from wjoin.statements.statement_sets import PlannedSet, plan_set


def explain_set(asked: Asked, statement: StatementSet, mode: str) -> Explanation:
    """Return what the statements of a set share, what each takes of it, and the plans of their joins.

    ``mode`` is that of EXPLAIN: of COST the text has all plans that were weighed. Raises WJoinError WJ503.
    """
    if mode not in ("", "COST"):
        raise WJoinError("WJ503", f"EXPLAIN {mode} is not available for a statement set", span=statement.span)
    planned = plan_set(asked, statement, None)
    documents = [each for part in planned.parts for each in part.rewriting.documents]
    total = f"{counted(len(planned.statements), 'statement')}, {counted(len(planned.parts), 'window join')}"
    unit = documents[0].unit
    lines = [f"Statement set: {total}, one query; figures are per {unit} of event time"]
    for part in planned.parts:
        names = ", ".join(each.statement.sink.name for each in part.takers)
        if len(part.takers) > 1:
            lines.append(f"  {names} share one window join: its streams, shuffle and state")
            shared = part.rewriting.planned[0]
            passes = ", a pass over the state for each alternative" if shared.physical.apart else ""
            lines.append(f"    together: {_work(shared)}{passes}")
            lines += [f"    {_taken(each)}" for each in part.takers]
        elif not part.takers:
            lines.append("  a window join keeps its state, for statements that the set no longer has")
        else:
            lines.append(f"  {names} has a window join of its own{f': {part.alone}' if part.alone else ''}")
    lines += _read_once(planned)
    parts = ["\n".join(lines), *(explain_text(each) for each in documents)]
    if mode == "COST":
        parts += [cost_text(each) for each in documents]
        parts.append(f"Sizing\n{advice(asked, documents, planned.kept.busy)}")
        joins = (each for part in planned.parts for each in part.rewriting.planned)
        parts += [state_text(each) for each in joins if keeps_state(each.physical)]
    return Explanation(shown_lines("\n\n".join(parts)), documents, planned.kept.busy)


def _read_once(planned: PlannedSet) -> Iterator[str]:
    """Yield which streams several joins read once; if the home of their state is not known, on what terms."""
    known = planned.folder is not None
    chosen = run_together(planned.parts, planned.kept)
    parts = [
        part
        for number, part in enumerate(planned.parts)
        if number in chosen or (not known and part.stages.in_turn)
    ]
    readers = Counter(each for part in parts for each in dict.fromkeys(part.stages.read_at()))
    written = {
        name: part.rewriting.done[0].sources[stream].written
        for part in parts
        for stream, name in part.stages.streams.items()
    }
    once = dict.fromkeys(written[name] for (name, _), count in readers.items() if count > 1)
    if once:
        terms = "" if known else ", if their state is in files"
        yield f"  these joins run in the same tasks{terms}; read once for several: {', '.join(once)}"


def _taken(taker: Taker) -> str:
    """Return in a line what a statement takes of a join that others have, too, and what it would do alone."""
    windows = "all results" if not taker.output.windows else "the results inside its windows"
    left = f", then tests {' AND '.join(taker.left)}" if taker.left else ""
    return f"{taker.statement.sink.name} takes {windows}{left}; by itself: {_work(taker.planned)}"


def _work(planned: PlannedSelect) -> str:
    """Return what a join is expected to do in a second of event time, and to keep."""
    cost = planned.candidates[0].estimated.cost
    comparisons = counted(figure(cost.comparisons), "comparison")
    rows = counted(figure(cost.state_rows), "row")
    return f"{comparisons}, {size(cost.shuffled_bytes)} shuffled, {rows} of state"
