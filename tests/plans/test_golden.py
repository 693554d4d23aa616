"""Golden plans: a statement, its EXPLAIN and the text that Spark gets.

``WJOIN_REWRITE=1`` writes the files anew.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plans.catalogue import plan
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.validate import validate
from wjoin.planner.planning import apply_edits

FILES = sorted(Path(__file__).parent.glob("*.yaml"))


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def result(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case with what the planner makes of it now."""
    planned = plan(case["sql"], case.get("parameters"))
    for each in planned.candidates:
        validate(each.plan)
    return {
        **case,
        "edited": apply_edits(case["sql"], planned.edits),
        "explain": explain_text(describe(planned)) + "\n",
    }


def cases() -> list[Any]:
    return [
        pytest.param(path, number, id=f"{path.stem}-{case['name']}")
        for path in FILES
        for number, case in enumerate(yaml.safe_load(path.read_text("utf-8")))
    ]


@pytest.mark.parametrize(("path", "number"), cases())
def test_plan(path: Path, number: int) -> None:
    known = yaml.safe_load(path.read_text("utf-8"))
    made = result(known[number])
    if os.environ.get("WJOIN_REWRITE"):
        known[number] = made
        text = yaml.dump(known, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096)
        path.write_text(text, "utf-8")
    else:
        assert made == known[number]
