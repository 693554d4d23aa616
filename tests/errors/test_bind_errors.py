"""Statements that the planner refuses, each with its exact error.

``bind_*.sql`` holds a statement, ``bind_*.err`` what it prints; ``-- :name = value`` on the
first lines of a statement gives a parameter. ``WJOIN_REWRITE=1`` writes the outputs anew.
"""

import ast
import os
import re
from pathlib import Path

import pytest

from tests.plans.catalogue import plan
from wjoin.grammar.errors import WJoinError

HERE = Path(__file__).parent
STATEMENTS = sorted(HERE.glob("bind_*.sql"))
_PARAMETER = re.compile(r"^-- :(\w+) = (.+)$", re.MULTILINE)


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.stem)
def test_error(path: Path) -> None:
    text = path.read_text("utf-8").rstrip("\n")
    parameters = {name: ast.literal_eval(value) for name, value in _PARAMETER.findall(text)}
    with pytest.raises(WJoinError) as caught:
        plan(text, parameters)
    shown = caught.value.render() + "\n"
    expected = path.with_suffix(".err")
    if os.environ.get("WJOIN_REWRITE"):
        expected.write_text(shown, "utf-8")
    assert shown == expected.read_text("utf-8")


def test_every_planner_code_has_a_statement() -> None:
    codes = {path.with_suffix(".err").read_text("utf-8")[6:11] for path in STATEMENTS}
    expected = {f"WJ{number}" for number in (*range(201, 214), 217, 221, *range(301, 307), 501, 504)}
    assert not expected - codes
