"""Numbers that no type holds, wherever a statement can have one: an error with a code, or a plan."""

import pytest

from tests.plans.catalogue import plan
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script

_LONG = "9" * 400
NUMBERS = (
    *("9" * 39, _LONG, f"-{_LONG}", f"{_LONG}.5", "9" * 5000, f"{_LONG}L", f"{_LONG}D", f"{_LONG}BD"),
    *("1e400", "-1e999999", "1e-400", "128Y", f"X'{'F' * 400}'", f"'{_LONG}'", f"CAST({_LONG} AS INT)"),
    *("TIMESTAMP '99999-01-01'", "DATE '-1-01-01'", f"INTERVAL '{_LONG}' SECOND", f"INTERVAL {_LONG} YEARS"),
    *("INTERVAL '9223372036854775807' DAY", "INTERVAL '1e400' SECOND"),
)
_JOIN = (
    "SELECT {select} FROM {one} A, {two} B WINDOW (A, B) = {window} WHERE A.{key} = B.{key} AND {condition}"
)
CONDITIONS = (
    *("{c} < {n}", "{c} BETWEEN B.{x} - {n} AND B.{x} + {n}", "abs({c} - B.{x}) <= {n}", "{c} IN (1, {n})"),
    *("{c} + B.{x} * {n} > {n}", "{c} + {n} = B.{x}", "CASE WHEN {c} > {n} THEN B.{x} ELSE {n} END < 1"),
    *("A.{t} < {n}", "A.{t} + {n} < B.{t}", "edit_distance(A.{s}, B.{s}) < {n}"),
)
COLUMNS = (
    {"one": "camera1", "two": "camera2", "key": "obj_id", "x": "speed", "t": "ts", "s": "frame"},
    {"one": "table1", "two": "table2", "key": "obj_id", "x": "obj_id", "t": "ts", "s": "frame"},
    {"one": "badge", "two": "badge", "key": "person", "x": "level", "t": "at", "s": "code"},
)
WINDOWS = ("{n}", "{n} SECONDS", "INTERVAL '{n}' SECOND", "'{n} seconds'", "INTERVAL {n} HOURS")
OTHERS = (
    "SELECT /*+ PLAN(PSP, {n}) */ 1 FROM camera1 A, camera2 B WINDOW = 5 SECONDS",
    "SELECT 1 FROM camera1 A, camera2 B WINDOW (A, B) BETWEEN {n} SECONDS AND {n} HOURS",
    "SELECT 1 FROM camera1 A, camera2 B PATH (A, B) WITHIN ({n} SECONDS)",
    "SELECT 1 FROM camera1 WATERMARK ts DELAY OF INTERVAL {n} SECONDS AS A, camera2 B WINDOW = 5 SECONDS",
    "SELECT 1 FROM ticks A, ticks B WINDOW (A, B) = {n}",
    "CREATE STREAM q (y AS a + {n}, ts TIMESTAMP) USING json OPTIONS (n '{n}') WATERMARK ts DELAY OF {n}",
    "ALTER STREAM q SET STATISTICS (rate = {n}, distinct.k = {n}, disorder = {n} SECONDS)",
    "ANALYZE STREAM q SAMPLE {n} ROWS",
)


def statements() -> list[str]:
    """Return the statements with {n} where the number stands."""
    made = list(OTHERS)
    for columns in COLUMNS:
        plain = {**columns, "c": f"A.{columns['x']}", "n": "{n}"}
        parts = {**plain, "select": "A.{key} + {n}".format(**plain), "window": "5 SECONDS"}
        made += [_JOIN.format(**parts, condition=each.format(**plain)) for each in CONDITIONS]
        made += [_JOIN.format(**{**parts, "window": each}, condition="true") for each in WINDOWS]
    return made


@pytest.mark.long
@pytest.mark.parametrize("statement", statements())
def test_a_number_out_of_range_is_an_error_with_a_code_or_no_error(statement: str) -> None:
    refused = 0
    for number in NUMBERS:
        text = statement.replace("{n}", number)
        try:
            parse_script(text)
            if text.startswith("SELECT"):
                plan(text)
        except WJoinError as error:
            refused += 1
            assert error.code.startswith(("WJ1", "WJ2", "WJ3")) and error.span is not None, text
    assert refused, "no number is out of range here"
