"""Predicates called for pairs of rows: NULLs held back, results checked, failures told with their rows."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import matrix, taken
from wjoin.executor.conditions import COMPARE
from wjoin.executor.gathering import GatheredLater
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.parts.kernels.runs import BoolArray
from wjoin.planner.plan.physical import TimeKind
from wjoin.udfs.predicate import Predicate

CALL_BYTES = 1 << 24
"""About the most bytes of arguments of one call."""

CACHED_BYTES = 1 << 20
"""About the bytes of arguments of one call: what a function makes of them stays in the cache of a core."""

CALL_PAIRS = 64
"""The pairs of one call at least, where so many are there: a call has a price of its own."""

_COLUMNS = (pa.Array, GatheredLater)

_Given: TypeAlias = pa.Array | npt.NDArray[Any]
"""An argument of the pairs of one call."""

_NAN_ABOVE = (">", ">=")
"""To Spark, NaN is above every other number."""


class PairFailedError(Exception):
    """A predicate cannot be called for one pair, the ``place``-th of those that it was asked about."""

    def __init__(self, place: int, what: str) -> None:
        super().__init__(what)
        self.place = place


def holds(
    predicate: Predicate, arguments: Sequence[Any], asked: bool | Sequence[tuple[str, float]]
) -> BoolArray:
    """Return for which pairs a condition on a predicate holds.

    ``arguments``: Arrow arrays of one length or such as are gathered later, or constants. ``asked``: the
    truth that is wanted, or comparisons of a score, all of which must hold. Raises PairFailedError where the
    predicate fails, and WJoinError WJ707 where it returns what it should not.
    """
    values, null = scores(predicate, arguments)
    kept: BoolArray = ~null
    if isinstance(asked, bool):
        kept &= (values != 0) == asked
        return kept
    for operator, limit in asked:
        found = COMPARE[operator](values, limit)
        kept &= found | np.isnan(values) if operator in _NAN_ABOVE else found
    return kept


def scores(predicate: Predicate, arguments: Sequence[Any]) -> tuple[npt.NDArray[np.float64], BoolArray]:
    """Return what a predicate says of pairs, truth as 0 and 1, and where that is NULL (see ``holds``)."""
    columns = [each for each in arguments if isinstance(each, _COLUMNS)]
    pairs = len(columns[0])
    values, null = np.zeros(pairs, np.float64), np.zeros(pairs, bool)
    size = sum(each.nbytes for each in columns)
    pairs_of_call = max(CALL_PAIRS, CACHED_BYTES * pairs // max(1, size))
    for start in range(0, pairs, pairs_of_call):
        count = min(pairs_of_call, pairs - start)
        given = [_part(predicate, each, start, count) for each in arguments]
        known = np.flatnonzero(_all_valid(given))
        null[start : start + count] = True
        if not len(known):
            continue
        if len(known) < count:
            given = [_known(each, known) for each in given]
        called = start + known
        try:
            found = predicate.function(*_arrays(predicate, given))
        except Exception as error:
            raise _failed(predicate, given, called, error) from error
        values[called], without = _numbers(predicate, found, len(called))
        null[called] = False
        null[called[without]] = True
    return values, null


def _all_valid(columns: Sequence[_Given]) -> BoolArray:
    """Return for which pairs no argument is NULL."""
    valid = np.ones(len(columns[0]), bool)
    for each in columns:
        if isinstance(each, pa.Array) and each.null_count:
            valid &= np.asarray(each.is_valid())
    return valid


def _part(predicate: Predicate, argument: Any, start: int, count: int) -> _Given:
    """Return an argument of some pairs, at once as a matrix where it comes to one in the end."""
    if not isinstance(argument, _COLUMNS):
        return pa.repeat(pa.scalar(argument), count)
    if isinstance(argument, GatheredLater) and predicate.arrays == "numpy":
        lines = argument.lines(start, count)
        if lines is not None:
            return lines
    return argument.slice(start, count)


def _known(given: _Given, places: npt.NDArray[np.int64]) -> _Given:
    return taken(given, pa.array(places)) if isinstance(given, pa.Array) else given[places]


def _arrays(predicate: Predicate, columns: Sequence[_Given]) -> list[Any]:
    return list(columns) if predicate.arrays == "arrow" else list(map(_numpy, columns))


def _numpy(column: _Given) -> npt.NDArray[Any]:
    """Return a column without NULLs as a NumPy array, or a matrix where its values have one length."""
    if isinstance(column, np.ndarray):
        return column
    lines = matrix(column)
    if lines is not None:
        return lines
    found: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


def _numbers(
    predicate: Predicate, found: Any, pairs: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return what a predicate has returned as numbers, and the places of those that are NULL."""
    wanted = np.bool_ if predicate.returns == "boolean" else np.float64
    if type(found) is np.ndarray and found.dtype == wanted and found.shape == (pairs,):
        return found.astype(np.float64), np.zeros(0, np.int64)
    try:
        column = found if isinstance(found, pa.Array) else pa.array(found)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _refused(predicate, f"returned a {type(found).__name__}, not a column") from error
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if len(column) != pairs:
        raise _refused(predicate, f"returned {counted(len(column), 'value')} for {counted(pairs, 'pair')}")
    kind = column.type
    truth = pa.types.is_boolean(kind)
    if not pa.types.is_null(kind) and truth != (predicate.returns == "boolean"):
        raise _refused(
            predicate, f"returned values of type {kind}, but is declared to return {predicate.returns}"
        )
    numbers = truth or any(
        check(kind) for check in (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    )
    if not numbers:
        raise _refused(
            predicate, f"returned values of type {kind}, but is declared to return {predicate.returns}"
        )
    values = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), 0.0))
    return values, np.flatnonzero(np.asarray(column.is_null()))


def _refused(predicate: Predicate, why: str) -> WJoinError:
    return WJoinError("WJ707", f"the predicate {predicate.name} {why}")


def _failed(
    predicate: Predicate, given: Sequence[_Given], known: npt.NDArray[np.int64], error: Exception
) -> PairFailedError:
    """Return the failure of a predicate at the first pair for which it fails alone."""
    for number, place in enumerate(known.tolist()):
        try:
            predicate.function(*_arrays(predicate, [each[number : number + 1] for each in given]))
        except Exception as alone:  # noqa: BLE001 (whatever the user's function raises)
            return PairFailedError(place, _told(alone))
    return PairFailedError(
        int(known[0]), f"{_told(error)} (in a call for {counted(len(known), 'pair')}, including this one)"
    )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def moment(time: int, kind: TimeKind) -> str:
    """Return an event time as messages tell it.

    >>> moment(1_704_067_205_250_000, TimeKind.TIMESTAMP), moment(7, TimeKind.INTEGRAL)
    ('2024-01-01 00:00:05.250000 UTC', '7')
    """
    if kind is TimeKind.INTEGRAL:
        return str(time)
    shown = str(np.datetime64(int(time), "us")).replace("T", " ")
    return f"{shown} UTC" if kind is TimeKind.TIMESTAMP else shown
