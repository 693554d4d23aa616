"""What tests of streams share: a plan in hops where the checkpoint is not known."""

from collections.abc import Iterator, Sequence

import pytest

from wjoin.planner.choose.layouts import Layout, LayoutRule


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
