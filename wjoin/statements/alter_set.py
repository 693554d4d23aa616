"""ALTER STATEMENT SET: a set that runs gets or loses a statement, between two micro-batches.

Its query is stopped once the micro-batch at work is written, and another one goes on with the changed set on
the same checkpoint. A micro-batch that has begun and is not written is the first one of that.
"""

from collections.abc import Sequence

from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import AlterSet, InsertInto, StatementSet
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import Identifier
from wjoin.joins.recognised import recognised
from wjoin.planner.plan.block_columns import quoted
from wjoin.queries.running import Running
from wjoin.queries.running_set import RunningSet
from wjoin.statements.set_histories import refuse_known, tell_gone
from wjoin.statements.statement_sets import plan_set, start_set


def alter_set(asked: Asked, statement: AlterSet) -> Running:
    """Change a statement set that runs, and return its query.

    Raises WJoinError WJ602 for an unknown set or sink, WJ606, and WJ702 for a statement that needs more than
    the state of the set has; then the set runs on as it was.
    """
    running, of_set = _find(asked, statement.name)
    inserts = _changed(asked, statement, of_set.inserts)
    failure = "ON FAILURE KEEP OTHERS " if of_set.keep_others else ""
    text = f"EXECUTE STATEMENT SET {quoted(of_set.name)} {failure}BEGIN {'; '.join(inserts)}; END"
    own = asked.asked(text, _together(asked, of_set, statement))
    body = recognised(own, parse_statement(text))
    if not isinstance(body, StatementSet):
        raise AssertionError("a statement set is one")
    with own.placed(), asked.queries.replacing(running):
        planned = plan_set(own, body, None, running.checkpoint, _histories(statement))
        refuse_known(planned)
    of_set.shut()
    running.changed = True
    running.stop()
    with own.placed():
        tell_gone(own, planned)
        return start_set(own, body, planned, once=of_set.once, every=of_set.every)


def _histories(statement: AlterSet) -> frozenset[str]:
    """Return the sink of a statement that is added WITH HISTORY, in lower case."""
    if not statement.history or statement.added is None:
        return frozenset()
    return frozenset({statement.added.target[-1].name.lower()})


def _find(asked: Asked, name: Identifier) -> tuple[Running, RunningSet]:
    """Return a statement set of this session that runs. Raises WJoinError WJ602."""
    sets = {each.of_set.name: each for each in asked.queries.known if each.of_set and each.query.isActive}
    for each in sets.values():
        if each.of_set is not None and name.matches(each.of_set.name):
            return each, each.of_set
    remedy = "change the set in its script, and start it again: it resumes from its checkpoint"
    message = f"no statement set named {name.name} runs in this session"
    known = {each.lower(): each for each in sets}
    raise WJoinError("WJ602", message, span=name.span, help=suggestion(name.name, known) or remedy)


def _changed(asked: Asked, statement: AlterSet, inserts: Sequence[str]) -> list[str]:
    """Return the statements of a set with the change."""
    if statement.added is not None:
        return [*inserts, statement.added.span.of(asked.text)]
    sinks = [_sink(each) for each in inserts]
    dropped = statement.dropped
    if dropped is None:
        raise AssertionError("a change adds or drops a statement")
    left = [each for each, sink in zip(inserts, sinks, strict=True) if not dropped.matches(sink)]
    if len(left) == len(inserts):
        known = {each.lower(): each for each in sinks}
        message = f"the set {statement.name.name} has no statement into {dropped.name}"
        help = suggestion(dropped.name, known) or f"it has those into {', '.join(sinks)}"
        raise WJoinError("WJ602", message, span=dropped.span, help=help)
    if not left:
        message = f"{dropped.name} is the last sink of the set {statement.name.name}"
        help = f"stop the set: STOP QUERY {statement.name.name}"
        raise WJoinError("WJ606", message, span=dropped.span, help=help)
    return left


def _sink(insert: str) -> str:
    found = parse_statement(insert)
    if not isinstance(found, InsertInto):
        raise AssertionError("a statement set holds only INSERT INTO")
    return found.target[-1].name


def _together(asked: Asked, of_set: RunningSet, statement: AlterSet) -> dict[str, object]:
    """Return the parameters of a set and of its change. Raises WJoinError WJ606 where they differ."""
    known = of_set.params
    other = [name for name, value in asked.params.items() if name in known and known[name] != value]
    if other:
        message = f"the set {of_set.name} has another value for the parameter :{other[0]}"
        raise WJoinError("WJ606", message, span=statement.span, help="give the parameter another name")
    return {**of_set.params, **asked.params}
