"""What tests of streams share: streams to join, and a plan in hops where the checkpoint is not known."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

import wjoin
from tests.stream.joined import Streams
from wjoin.planner.choose.layouts import Layout, LayoutRule


@pytest.fixture
def streams(session: wjoin.Session, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Streams]:
    """Streams whose rows are drawn with the ``SEED`` of the module, and may be ``DELAY`` late, or 20."""
    delay: int = getattr(request.module, "DELAY", 20)
    found = Streams(session, tmp_path, Random(request.module.SEED), delay=delay)
    yield found
    for each in session.running:
        each.stop()
    found.oracle.close()


@pytest.fixture(params=["hops ", "at once "])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have a plan in hops taken where the checkpoint is not known."""
    taken: list[Layout] = []

    def hopping(rule: LayoutRule, layouts: Sequence[Layout]) -> Layout:
        taken.append(next(each for each in layouts if each.stages.startswith(request.param)))
        return taken[-1]

    monkeypatch.setattr(LayoutRule, "_instead", hopping)
    yield request.param
    assert taken
