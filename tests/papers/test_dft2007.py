"""The DFT paper's experiments with few points: which claims hold, and which do not."""

import dft2007
import pytest
from s2j_parts import claims_table

from tests.tiers import tiers

HELD = {
    "bounds": [True, False],
    "readings": [False, False],
    "rebuilding": [False, False, False],
}
"""Which claims of each part hold; those that do not are told in docs/papers/dft2007.md."""

LAST = {"messages": 2, "compression": 1, "estimates": 1}
"""How many of the last claims of a part, which are this project's own, must hold on few points."""


@pytest.mark.parametrize("part", tiers(HELD, long=["readings", "rebuilding"]))
def test_what_holds_of_the_claims(part: str) -> None:
    claims = dft2007.PARTS[part](quick=True).claims
    assert [each.verdict.held for each in claims] == HELD[part], claims_table(part, claims).text()


@pytest.mark.long
@pytest.mark.parametrize("part", LAST)
def test_what_this_project_claims(part: str) -> None:
    claims = dft2007.PARTS[part](quick=True).claims
    own = claims[:1] if part == "estimates" else claims[-LAST[part] :]
    assert all(each.verdict.held for each in own), claims_table(part, claims).text()


@pytest.mark.long
def test_costs_are_measured() -> None:
    tables = dft2007.PARTS["costs"](quick=True).tables
    assert all(float(line[1].replace(",", "")) >= 0 for table in tables for line in table.lines)
