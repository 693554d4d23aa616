"""EXPLAIN: how the W-joins of a statement are planned, and what its mode asks for besides."""

from wjoin.asking.match import explain_match
from wjoin.context import Asked
from wjoin.grammar.shown import shown_lines
from wjoin.grammar.statement_kinds import (
    CreateView,
    Explain,
    ExplainDelay,
    ExplainSet,
    InsertInto,
    Query,
    Statement,
    StatementSet,
)
from wjoin.grammar.syntax import Identifier
from wjoin.homes.homes import AUTO, FILES, IN_WORDS, SPARK, keeps_state, state_workers
from wjoin.joins.relations import spark_plan
from wjoin.joins.rewrite import rewrite
from wjoin.measured.compared import measured_text
from wjoin.measured.kept import Kept
from wjoin.planner.explain.cost import cost_text
from wjoin.planner.explain.kept_state import state_text
from wjoin.planner.explain.text import explain_text
from wjoin.statements.advice import advice
from wjoin.statements.explain_delay import explain_delay
from wjoin.statements.explained_sets import explain_set
from wjoin.statements.explanation import Explanation
from wjoin.statements.inserts import explained_checkpoint, find_target


def explain(asked: Asked, statement: Statement, mode: str = "") -> Explanation:
    """Return the plans of a statement's W-joins, and in the text what the mode asks for besides.

    An INSERT INTO is planned as on the checkpoint that it would have. COST: every candidate.
    ANALYZE: what the query does, which it runs. FORMATTED: Spark's own plan. MATCH: why rows are no result.
    """
    if isinstance(statement, ExplainDelay):
        return Explanation(explain_delay(asked, statement))
    if isinstance(statement, StatementSet) and mode == "MATCH":
        return Explanation("\n\n".join(_match(asked, each) for each in statement.inserts))
    if isinstance(statement, ExplainSet):
        return explain_set(asked, statement.body, statement.mode or mode)
    if isinstance(statement, StatementSet):
        return explain_set(asked, statement, mode)
    target: tuple[Identifier, ...] = ()
    written = statement
    if isinstance(statement, Explain | InsertInto):
        target = statement.target
    if isinstance(statement, Explain):
        mode = statement.mode or mode
    if isinstance(statement, CreateView | Explain | InsertInto):
        statement = statement.body
    if not isinstance(statement, Query):
        command = statement.written(asked.text)
        if command.split(None, 1)[0].upper() != "EXPLAIN":
            command = f"EXPLAIN {mode} {command}"
        with asked.placed(statement.span):
            frame = asked.engine.run(command)
        return Explanation(shown_lines("\n".join(row[0] for row in frame.collect())))
    if mode == "MATCH":
        return Explanation(_match(asked, written))
    checkpoint = explained_checkpoint(asked, target)
    kept = Kept(asked.engine.spark, checkpoint, asked.settings.home())
    analyze = mode == "ANALYZE"
    # What is not run loses no late rows.
    rewriting = rewrite(asked, statement, kept, metered=analyze, runs=analyze, apart=True)
    documents = rewriting.documents
    if target and any(each.streaming for each in documents):
        with asked.placed():
            find_target(asked, target)
    busy = kept.busy if any(each.streaming for each in documents) else ""
    parts = [explain_text(each) for each in documents]
    if target or asked.settings.home() != AUTO:
        plans = [each.physical for each in rewriting.planned]
        if any(state_workers(asked.engine.spark, each) for each in plans):
            parts.append(_state_text(kept))
    if mode == "COST":
        parts += [cost_text(each) for each in documents]
        if joined := [each for each in documents if each.streaming and each.stages]:
            parts.append(f"Sizing\n{advice(asked, joined, busy)}")
        parts += [state_text(each) for each in rewriting.planned if keeps_state(each.physical)]
    if analyze:
        frame = rewriting.run_placed()
        with asked.placed(statement.span):
            parts.append(measured_text(frame, rewriting.planned, rewriting.joins.meters))
    if mode == "FORMATTED":
        parts.append("Spark plan\n" + spark_plan(rewriting.run_placed()))
    return Explanation(shown_lines("\n\n".join(parts)), documents, busy)


def _match(asked: Asked, statement: Statement) -> str:
    """Return what EXPLAIN MATCH tells of a statement, without meant rows under the name of its sink."""
    body = statement.body if isinstance(statement, CreateView | Explain | InsertInto) else statement
    if not isinstance(body, Query):
        return ""
    target = statement.target if isinstance(statement, Explain | InsertInto) else ()
    meant = statement.meant if isinstance(statement, Explain) else ()
    head = f"{'.'.join(each.name for each in target)}\n" if target and not meant else ""
    checkpoint = explained_checkpoint(asked, target)
    return shown_lines(head + explain_match(asked, body, meant, checkpoint))


def _state_text(kept: Kept) -> str:
    """Return where the state will be, and why."""
    return f"State: {IN_WORDS[FILES if kept.home.files else SPARK]} ({kept.home.why})"
