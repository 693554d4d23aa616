"""Each mark of a tier is known, and `make test` has a test of every folder."""

import tomllib
from pathlib import Path

import pytest

from tests.packages import ROOT

FOLDERS = sorted({path.parent.name for path in Path(__file__).parent.glob("*/test_*.py")})


def test_the_marks_are_registered_and_make_runs_each_tier() -> None:
    registered = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["markers"]
    make = (ROOT / "Makefile").read_text("utf-8")
    for tier in ("quick", "long", "thorough"):
        assert any(each.startswith(f"{tier}:") for each in registered)
        assert f'-m "{tier}' in make


def test_each_folder_has_a_test_that_make_test_runs(request: pytest.FixtureRequest) -> None:
    if request.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        pytest.skip("only some of the tests are collected")
    quick = {item.path.parent.name for item in request.session.items if item.get_closest_marker("quick")}
    assert [folder for folder in FOLDERS if folder not in quick] == []
