"""Dataclasses as plain data, and back: what is read is checked by the types of its fields."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from wjoin.grammar.plain import plain, typed


@dataclass(frozen=True)
class Inner:
    name: str
    share: float


@dataclass(frozen=True)
class Outer:
    number: int
    pair: tuple[int, str]
    many: tuple[Inner, ...]
    perhaps: Inner | None
    length: int | float | None
    seen: dict[int, bool]
    named: Mapping[str, tuple[int, ...]]


WHOLE = Outer(1, (2, "b"), (Inner("c", 1.0),), None, 2.5, {3: True}, {"d": (4, 5)})


@pytest.mark.parametrize("value", [WHOLE, Outer(-1, (0, ""), (), Inner("", 0.5), 7, {}, {})])
def test_what_was_written_is_read(value: Outer) -> None:
    found = typed(Outer, json.loads(json.dumps(plain(value))))
    assert found == value
    assert type(found.length) is type(value.length)
    assert typed(Outer, [*plain(value).values()]) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", True),
        ("number", 1.0),
        ("number", 1 << 63),
        ("number", None),
        ("pair", [2]),
        ("pair", ["b", 2]),
        ("pair", 2),
        ("many", [{"name": "c"}]),
        ("many", [{"name": "c", "share": 1, "more": 2}]),
        ("many", [["c"]]),
        ("many", {"name": "c", "share": 1.0}),
        ("perhaps", {"name": "c", "share": float("nan")}),
        ("perhaps", 5),
        ("length", "2"),
        ("seen", {"x": True}),
        ("seen", {"3": 1}),
        ("named", [["d", [4]]]),
        ("other", 1),
    ],
)
def test_what_was_never_written_is_refused(name: str, value: object) -> None:
    body = {**plain(WHOLE), name: value}
    with pytest.raises(ValueError):
        typed(Outer, body)


@pytest.mark.parametrize("name", plain(WHOLE))
def test_no_entry_may_be_missing(name: str) -> None:
    with pytest.raises(ValueError):
        typed(Outer, {each: value for each, value in plain(WHOLE).items() if each != name})
