"""Small pieces that make text: edits, literals, names, durations."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Parameter
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.literals import literal
from wjoin.planner.text.scope import quoted, quoted_if_needed
from wjoin.planner.windows.lengths import duration_value, human


def test_edits_inside_a_span_only() -> None:
    edits = [Edit(0, 1, "X"), Edit(4, 4, "t."), Edit(7, 9, "")]
    assert apply_edits("a = bcd  e", edits) == "X = t.bcde"
    assert apply_edits("a = bcd  e", edits, Span(2, 7)) == "= t.bcd"


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abc", [Edit(0, 2, "x"), Edit(1, 3, "y")])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (2**31, "2147483648L"),
        (-5, "(-5)"),
        (2**63, None),
        (1.5, "1.5D"),
        (float("nan"), None),
        (Decimal("-1.50"), "(-1.50BD)"),
        ("x y", "'x y'"),
        ("it's", None),
        ("a\\b", None),
        ("a\nb", None),
        (date(2013, 1, 2), "DATE '2013-01-02'"),
        (datetime(2013, 1, 2), None),
        ([1], None),
    ],
)
def test_literals(value: object, expected: str | None) -> None:
    assert literal(value) == expected


def test_names_are_quoted_where_spark_needs_it() -> None:
    assert [quoted_if_needed(name) for name in ("a1", "1a", "a b", "CASE", "é", "a`b")] == [
        "a1",
        "`1a`",
        "`a b`",
        "`CASE`",
        "`é`",
        "`a``b`",
    ]
    assert quoted("a") == "`a`"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 s"),
        (1, "1 us"),
        (-5_000_000, "-5 s"),
        (90_061_001_000, "1 d 1 h 1 min 1 s 1 ms"),
        (-61_000_000, "-(1 min 1 s)"),
    ],
)
def test_durations_for_people(value: int, expected: str) -> None:
    assert human(value, TimeKind.TIMESTAMP) == expected


@given(st.integers(-(10**15), 10**15))
def test_a_parameter_may_be_a_timedelta(microseconds: int) -> None:
    parameter = Parameter("w", True, span=Span(0, 2))
    given_value = {"w": timedelta(microseconds=microseconds)}
    assert duration_value(parameter, TimeKind.TIMESTAMP_NTZ, given_value) == -microseconds


def test_a_parameter_in_words_and_digits() -> None:
    parameter = Parameter("w", False, span=Span(0, 2))
    assert duration_value(parameter, TimeKind.TIMESTAMP, {"w": "1 hour 30 minutes"}) == 5_400_000_000
    assert duration_value(parameter, TimeKind.INTEGRAL, {"w": "12"}) == 12
    with pytest.raises(WJoinError, match="WJ305"):
        duration_value(parameter, TimeKind.INTEGRAL, {"w": "12 seconds"})
