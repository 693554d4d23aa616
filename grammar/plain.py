"""Dataclasses as plain data that JSON can hold, and back: checked by the types of their fields."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_LEAVES = frozenset((int, str, bool, float, NoneType))
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


def plain(value: Any) -> Any:
    """Return a value as plain data: dataclasses and mappings as objects, tuples as lists.

    A trailing underscore of a field's name is left out.
    """
    if type(value) in _LEAVES:
        return value
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    return {each.name.rstrip("_"): plain(getattr(value, each.name)) for each in fields(value)}


def typed(kind: type[T], value: Any) -> T:
    """Return what ``plain`` has made of a dataclass, which may also stand as the list of its values.

    Raises ValueError for anything else, for whole numbers that 64 bits do not hold, and for numbers that are
    not finite.
    """
    hints = _hints(kind)
    if isinstance(value, list):
        value = dict(zip(hints, value, strict=True))
    if not isinstance(value, dict) or value.keys() != hints.keys():
        raise ValueError(f"{value!r:.60} is no {kind.__name__}")
    return kind(**{name: _field(*hints[name], each) for name, each in value.items()})


def _field(kind: Any, origin: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    """Return a value of a type, whose origin and arguments are given."""
    if type(value) is kind and kind in _LEAVES:
        if (kind is not int or _LEAST <= value <= _GREATEST) and (kind is not float or isfinite(value)):
            return value
    elif origin is UnionType:
        for each in arguments:
            with suppress(ValueError):
                return _field(*_parts(each), value)
    elif origin is tuple and isinstance(value, list):
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple([_field(*_parts(each), item) for each, item in zip(kinds, value, strict=True)])
    elif origin is not None and isinstance(value, dict):
        key, inside = (int if arguments[0] is int else str), _parts(arguments[1])
        return {key(name): _field(*inside, each) for name, each in value.items()}
    elif kind is float and type(value) is int:
        return float(value)
    elif is_dataclass(kind):
        return typed(kind, value)  # type: ignore[arg-type]  # it is a type
    raise ValueError(f"{value!r:.60} is no {getattr(kind, '__name__', kind)}")


@cache
def _parts(kind: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    return kind, get_origin(kind), get_args(kind)


def _hints_of(kind: Any) -> dict[str, tuple[Any, Any, tuple[Any, ...]]]:
    return {name: _parts(hint) for name, hint in get_type_hints(kind).items()}


_hints: Callable[[Any], dict[str, tuple[Any, Any, tuple[Any, ...]]]] = cache(_hints_of)
