"""Dataclasses as plain data that JSON can hold, and back: checked by the types of their fields."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


def plain(value: Any) -> Any:
    """Return a value as plain data: dataclasses and mappings as objects, tuples as lists.

    A trailing underscore of a field's name is left out.
    """
    if is_dataclass(value):
        return {each.name.rstrip("_"): plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def typed(kind: type[T], value: Any) -> T:
    """Return what ``plain`` has made of a dataclass, which may also stand as the list of its values.

    Raises ValueError for anything else, for whole numbers that 64 bits do not hold, and for numbers that are
    not finite.
    """
    hints = _hints(kind)
    if isinstance(value, list):
        value = dict(zip(hints, value, strict=True))
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.60} is no {kind.__name__}")
    if value.keys() != hints.keys():
        raise ValueError(f"a {kind.__name__} has entries that are missing or unknown")
    return kind(**{name: _field(hints[name], each) for name, each in value.items()})


def _field(kind: Any, value: Any) -> Any:
    arguments, origin = get_args(kind), get_origin(kind)
    if is_dataclass(kind):
        return typed(kind, value)  # type: ignore[arg-type]  # it is a type
    if origin is UnionType:
        for each in arguments:
            with suppress(ValueError):
                return _field(each, value)
    elif origin is tuple and isinstance(value, list):
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_field(*pair) for pair in zip(kinds, value, strict=True))
    elif origin is not None and isinstance(value, dict):
        key = int if arguments[0] is int else str
        return {key(name): _field(arguments[1], each) for name, each in value.items()}
    elif kind is float:
        if type(value) in (int, float) and isfinite(value):
            return float(value)
    elif type(value) is kind and (kind is not int or _LEAST <= value <= _GREATEST):
        return value
    raise ValueError(f"{value!r:.60} is no {getattr(kind, '__name__', kind)}")


_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)
