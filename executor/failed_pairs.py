"""What is told of rows for which a predicate failed: their times, their key, the statement."""

from collections.abc import Iterator

import numpy as np

from wjoin.executor.combinations import Combinations
from wjoin.executor.pair_calls import PairFailedError, moment
from wjoin.grammar.errors import WJoinError
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.checks import PredicateCheck
from wjoin.planner.plan.physical import KeyCode, PhysicalPlan, TimeKind
from wjoin.planner.plan.stage_kinds import Stage

_LONGEST = 60
"""Characters of a value that are told."""


def failure(
    plan: PhysicalPlan,
    stage: Stage,
    check: PredicateCheck,
    name: str,
    tuples: Combinations,
    failed: PairFailedError,
    statement: str,
) -> WJoinError:
    """Return WJ706 for the rows of one of the tuples; ``name`` is the predicate's."""
    rows = " and ".join(
        f"{plan.streams[stream].alias} at {moment(tuples.times[stream][failed.place], plan.time_kind)}"
        for stream in sorted(check.streams)
    )
    key = " and ".join(_key(plan, stage, tuples, failed.place))
    message = f"the predicate {name} failed for the rows of {rows}"
    message += f" with the key {key}" if key else ""
    message += f" in {statement}" if statement else ""
    return WJoinError("WJ706", f"{message}: {failed}")


def _key(plan: PhysicalPlan, stage: Stage, tuples: Combinations, place: int) -> Iterator[str]:
    """Yield the parts of the key that all rows of a tuple have; none where its hash alone is known."""
    keyed = (number for number in sorted(tuples.rows) if stage.inputs[number].key is not None)
    number = next(keyed, None)
    owner = None if number is None else stage.inputs[number].key
    if number is None or owner is None:
        return
    stream, code = owner[0], plan.streams[owner[0]].codes[owner[1]]
    if code.exact:
        yield f"{code.expressions[0]} = {_exact(code, int(tuples.codes[place]))}"
    for expression, column in zip(code.expressions, code.verify, strict=False):
        value = tuples.column(number, stored_column(plan, stream, column).name)[place].as_py()
        text = repr(value)
        yield f"{expression} = {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}"


def _exact(code: KeyCode, value: int) -> str:
    kind = code.types[0]
    if kind == "boolean":
        return str(bool(value)).lower()
    if kind == "date":
        return str(np.datetime64(value, "D"))
    return moment(value, TimeKind(kind) if kind.startswith("timestamp") else TimeKind.INTEGRAL)
