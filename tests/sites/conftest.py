"""Sites as processes of their own, each in a temporary folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sites.processes import Process, Sites
from tests.sites.stores import close_all


@pytest.fixture
def sites(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sites]:
    """Starts sites; ends them after the test, and prints what they logged where it has failed."""
    started: list[Process] = []
    yield Sites(tmp_path, started)
    for each in started:
        each.end()
        # pytest shows it with a test that has failed only.
        print(f"--- log of the site\n{each.log()}")


@pytest.fixture(autouse=True)
def closed_stores() -> Iterator[None]:
    """Close the stores that a test has opened, also where it has failed."""
    yield
    close_all()
