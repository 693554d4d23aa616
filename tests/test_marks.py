"""Each mark of a tier is known, and `make test` has a test of every folder."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.packages import ROOT

HERE = Path(__file__).parent
# Of these formats there is none for the newest Spark; other kinds of sessions are tested on the oldest one.
FOLDERS = sorted({path.parent.name for path in HERE.glob("*/test_*.py")} - {"delta", "iceberg", "compat"})


def test_the_marks_are_registered_and_make_runs_each_tier() -> None:
    registered = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["markers"]
    make = (ROOT / "Makefile").read_text("utf-8")
    for tier in ("quick", "long", "thorough"):
        assert any(each.startswith(f"{tier}:") for each in registered)
        assert re.search(rf'-m "\(?({tier}|long or {tier})\b', make)


def test_each_folder_has_a_test_that_make_test_runs(request: pytest.FixtureRequest) -> None:
    config = request.config
    paths = {Path(each).resolve() for each in config.args}
    if (paths, config.option.markexpr, config.option.keyword) != ({HERE}, "quick", ""):
        pytest.skip("only some of the tests are run")
    quick = {item.path.parent.name for item in request.session.items}
    assert [folder for folder in FOLDERS if folder not in quick] == []
