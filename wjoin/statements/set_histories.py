"""Statements that are added to a set WITH HISTORY: what they would double, and what they lack."""

from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.measured.last_manifest import last_manifest
from wjoin.measured.progress import time_text
from wjoin.planner.sets.with_history import complete_from
from wjoin.spark.notices import warn
from wjoin.statements.statement_sets import PlannedSet


def refuse_known(planned: PlannedSet) -> None:
    """Refuse a history for a sink that the set has had before: WJoinError WJ606."""
    begun = planned.kept.begun_with
    for name in planned.histories:
        if begun is not None and begun.sink(name) is not None:
            message = f"the set {planned.name} has written into {name} before, and results would come twice"
            raise WJoinError("WJ606", message, help="leave WITH HISTORY out, or insert into a new sink")


def tell_gone(asked: Asked, planned: PlannedSet) -> None:
    """Warn (WJ821) of each history that may lack results, from when on it has all."""
    for number, part in enumerate(planned.parts):
        for taker in part.takers:
            sink, plan = taker.statement.sink.name, part.rewriting.planned[0].physical
            if planned.folder is None or sink.lower() not in planned.histories:
                continue
            last = last_manifest(asked.engine.spark, planned.folder, planned.kept, number, plan)
            if last is None or last.writing is None:
                continue
            first = complete_from(plan, taker.output, last.writing.retentions, last.seen)
            if first is not None:
                told = f"{sink} has all results with a MATCH_TIME from {time_text(first)} on"
                warn(WJoinWarning("WJ821", f"{told}; of earlier ones rows may be gone"))
