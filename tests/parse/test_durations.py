"""All spellings of a duration."""

import pytest

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.durations import spell
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def bounds(low: str, high: str = ":u") -> syntax.WindowBetween:
    statement = parse_statement(f"SELECT * FROM A, B WINDOW (A, B) BETWEEN {low} AND {high}")
    assert isinstance(statement, statement_kinds.Query)
    window = statement.blocks[0].window
    assert isinstance(window, syntax.WindowBetween)
    return window


def duration(text: str) -> int:
    low = bounds(text).low
    assert isinstance(low, syntax.TimeDuration)
    return low.microseconds


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5 SECONDS", 5 * SECOND),
        ("1 second", SECOND),
        ("INTERVAL '1' MINUTE", MINUTE),
        ("'5 seconds'", 5 * SECOND),
        ('"1 hour 30 minutes"', HOUR + 30 * MINUTE),
        ("'-5 s'", -5 * SECOND),
        ("- '5 s'", -5 * SECOND),
        ("INTERVAL 90 SECONDS", 90 * SECOND),
        ("1.5 hours", HOUR + 30 * MINUTE),
        (".5 s", SECOND // 2),
        ("1e3 ms", SECOND),
        ("250 ms", SECOND // 4),
        ("250ms", SECOND // 4),
        ("1.5h", HOUR + 30 * MINUTE),
        ("5s", 5 * SECOND),
        ("2D", 2 * DAY),
        ("7 us", 7),
        ("7 µs", 7),
        ("7 μs", 7),
        ("3 microseconds", 3),
        ("1000 ns", 1),
        ("2 WEEKS", 14 * DAY),
        ("1 HOUR 30 MINUTES", HOUR + 30 * MINUTE),
        ("INTERVAL 1 HOUR 30 MINUTES", HOUR + 30 * MINUTE),
        ("INTERVAL '1 hour 30 minutes'", HOUR + 30 * MINUTE),
        ("INTERVAL 'interval 1 hour -30 minutes'", 30 * MINUTE),
        ("INTERVAL '- 5 seconds'", -5 * SECOND),
        ('INTERVAL "5 seconds"', 5 * SECOND),
        ("INTERVAL r'5 seconds'", 5 * SECOND),
        ("INTERVAL '1.5' HOUR", HOUR + 30 * MINUTE),
        ("-5 SECONDS", -5 * SECOND),
        ("- INTERVAL 5 SECONDS", -5 * SECOND),
        ("INTERVAL -5 SECONDS", -5 * SECOND),
        ("INTERVAL '-5' SECONDS", -5 * SECOND),
        ("INTERVAL -'5' SECONDS", -5 * SECOND),
        ("-INTERVAL -5 SECONDS", 5 * SECOND),
        ("+5 SECONDS", 5 * SECOND),
        ("INTERVAL '01:30:00' HOUR TO SECOND", HOUR + 30 * MINUTE),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + SECOND // 2),
        ("INTERVAL '-1:30' MINUTE TO SECOND", -90 * SECOND),
        ("INTERVAL -'1:30' HOUR TO MINUTE", -90 * MINUTE),
        ("INTERVAL '2 3' DAY TO HOUR", 2 * DAY + 3 * HOUR),
        ("INTERVAL '2 3:04' DAYS TO MINUTES", 2 * DAY + 3 * HOUR + 4 * MINUTE),
        ("0.000001 SECONDS", 1),
        ("9223372036854775807 MICROSECONDS", 2**63 - 1),
    ],
)
def test_duration(text: str, microseconds: int) -> None:
    assert duration(text) == microseconds


@pytest.mark.parametrize(("text", "value"), [("5", 5), ("-5", -5), ("5L", 5), ("1e3", 1000), ("5.0", 5)])
def test_bare_number(text: str, value: int) -> None:
    low = bounds(text).low
    assert isinstance(low, syntax.BareNumber)
    assert low.value == value


@pytest.mark.parametrize(
    ("text", "negative"), [(":w", False), ("-:w", True), ("- -:w", None), ("+:w", False)]
)
def test_parameter(text: str, negative: bool | None) -> None:
    if negative is None:
        with pytest.raises(WJoinError, match="WJ101"):
            bounds(text)
        return
    low = bounds(text).low
    assert isinstance(low, syntax.Parameter)
    assert (low.name, low.negative) == ("w", negative)


@pytest.mark.parametrize(
    ("text", "code", "remedy"),
    [
        ("5 SECODNS", "WJ103", "did you mean SECONDS?"),
        ("5 minuts", "WJ103", "did you mean MINUTES?"),
        ("5 fortnights", "WJ103", "seconds, minutes"),
        ("1 MONTH", "WJ103", "30 DAYS"),
        ("INTERVAL '1' YEAR", "WJ103", "30 DAYS"),
        ("INTERVAL '1-2' YEAR TO MONTH", "WJ103", "30 DAYS"),
        ("INTERVAL '2 years'", "WJ103", "30 DAYS"),
        ("5 m", "WJ103", "MINUTES"),
        ("1 ns", "WJ103", "microsecond"),
        ("0.0000001 SECONDS", "WJ103", "microsecond"),
        ("9223372036854775808 MICROSECONDS", "WJ103", ""),
        ("1e999 SECONDS", "WJ103", ""),
        ("9223372036854775808", "WJ103", ""),
        ("1.5", "WJ102", "unit"),
        ("INTERVAL 5", "WJ102", "unit"),
        ("INTERVAL '5'", "WJ102", "unit"),
        ("INTERVAL 'soon'", "WJ103", ""),
        ("INTERVAL ''", "WJ103", ""),
        ("INTERVAL 'x' SECOND", "WJ103", ""),
        ("INTERVAL '5 seconds' SECOND", "WJ103", ""),
        ("INTERVAL '25:61:00' HOUR TO SECOND", "WJ103", ""),
        ("INTERVAL '1' SECOND TO HOUR", "WJ103", "smaller"),
        ("INTERVAL '1 2' HOUR TO SECOND", "WJ103", ""),
    ],
)
def test_no_duration(text: str, code: str, remedy: str) -> None:
    with pytest.raises(WJoinError) as caught:
        bounds(text)
    assert caught.value.code == code
    assert remedy in caught.value.help


def test_bounds_of_two_kinds() -> None:
    with pytest.raises(WJoinError, match="WJ102"):
        bounds("1", "5 SECONDS")


def test_bounds_out_of_order_are_for_the_join_to_judge() -> None:
    """Of an outer join nothing is inside of them; of an inner join the planner refuses them."""
    found = bounds("5 SECONDS", "-3 SECONDS")
    assert (found.low.microseconds, found.high.microseconds) == (5 * SECOND, -3 * SECOND)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 SECONDS"),
        (SECOND, "1 SECOND"),
        (-90 * SECOND, "-90 SECONDS"),
        (7 * DAY, "1 WEEK"),
        (1, "1 MICROSECONDS"),
    ],
)
def test_spell(microseconds: int, text: str) -> None:
    assert spell(microseconds) == text
