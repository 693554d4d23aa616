"""Columns that hold a time in another form than a timestamp, and how a timestamp is made of them."""

import re
from collections.abc import Sequence

from wjoin.planner.catalog import INTEGRAL, Column
from wjoin.planner.text.scope import quoted_if_needed

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TIME_WORDS = frozenset(
    """
    at clock date datetime epoch micros microseconds millis milliseconds ms sec seconds stamp t time timestamp
    ts us when
    """.split()
)
_UNITS = {
    "timestamp_millis": {"ms", "millis", "milliseconds"},
    "timestamp_micros": {"us", "micros", "microseconds"},
    "timestamp_seconds": {"s", "sec", "seconds"},
}
_OF_UNITS = frozenset().union(*_UNITS.values())
_EPOCH = ("int", "bigint")
_FRACTIONAL = ("float", "double", "decimal")
_COMPUTE = "in the columns of CREATE STREAM, or in a subquery"


def is_time_name(name: str) -> bool:
    """Return whether a column's name says that it holds a time.

    >>> [is_time_name(name) for name in ("created_at", "eventTime", "ts", "user_id", "status", "count")]
    [True, True, True, False, False, False]
    """
    words = _words(name)
    return bool(words & _TIME_WORDS) or any(word.endswith(("time", "timestamp")) for word in words)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(name)}


def remedy_for_type(column: Column, columns: Sequence[Column]) -> str:
    """Return how to make a timestamp of a column that is no event time, empty where that is not clear."""
    name = quoted_if_needed(column.name)
    computed = "event_ts" if any(each.name.lower() == "event_time" for each in columns) else "event_time"
    if column.type.startswith("string"):
        return (
            f"convert the string to a timestamp: {computed} AS to_timestamp({name}) {_COMPUTE}; "
            f"a source of JSON or CSV reads {name} TIMESTAMP as well"
        )
    if column.type == "date":
        return f"convert the date to a timestamp: {computed} AS CAST({name} AS TIMESTAMP) {_COMPUTE}"
    if column.type.startswith(_FRACTIONAL):
        return f"convert epoch seconds to a timestamp: {computed} AS timestamp_seconds({name}) {_COMPUTE}"
    if column.type in _EPOCH:
        words = _words(column.name)
        functions = [each for each, units in _UNITS.items() if words & units]
        functions = functions or ["timestamp_seconds" if column.type == "int" else "timestamp_millis"]
        units = (
            "" if column.type == "int" or words & _OF_UNITS else " (or timestamp_seconds, timestamp_micros)"
        )
        return f"convert epoch time to a timestamp: {computed} AS {functions[0]}({name}){units} {_COMPUTE}"
    return ""


def convertible(columns: Sequence[Column]) -> Column | None:
    """Return the first column that is named like a time and of which a timestamp can be made."""
    timely = (each for each in columns if is_time_name(each.name))
    return next((each for each in timely if remedy_for_type(each, columns)), None)


def remedy_without_timestamp(columns: Sequence[Column], relation: str, alias: str) -> str:
    """Return what to do where a relation has no timestamp column; it proposes columns named like a time."""
    column = convertible(columns)
    if column is None:
        general = "a stream needs a TIMESTAMP, TIMESTAMP_NTZ or integral column as its event time"
        if not any(each.type in INTEGRAL for each in columns):
            return general
        return f"{general}; name an integral one: {relation} WATERMARK column DELAY OF 5 AS {alias}"
    remedy = remedy_for_type(column, columns)
    if column.type not in _EPOCH:
        return remedy
    name = quoted_if_needed(column.name)
    return f"{remedy}; for a unit of your own write {relation} WATERMARK {name} DELAY OF 5 AS {alias}"
