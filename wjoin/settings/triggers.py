"""When micro-batches start: the setting wjoin.trigger, and the option trigger of a sink."""

from wjoin.grammar.durations import from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span


def processing_time(value: str, name: str = "trigger") -> str:
    """Return a time between the starts of micro-batches as Spark takes it.

    ``0 seconds``: one after the other. Raises WJoinError WJ603 with the ``name`` of what has the value.
    """
    remedy = "give a time, such as '10 seconds'; a run with --once or once=True needs none"
    try:
        microseconds = from_pairs(value, Span(0, len(value)))
    except WJoinError as error:
        raise WJoinError("WJ603", f"{name} is '{value}': {error.message}", help=remedy) from None
    if microseconds < 0 or microseconds % 1000:
        raise WJoinError("WJ603", f"{name} is '{value}', but Spark's unit is the millisecond", help=remedy)
    return f"{microseconds // 1000} milliseconds"
