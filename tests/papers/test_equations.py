"""The equations of Semijoin streams (section 5.1) and their limits."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from semijoin_settings import Sides, semijoin_seconds, simple_seconds

from wjoin.planner.cost.semijoin import NetworkLink

PAPER = Sides(500, 500, 500, 500, full=100, partial=10, distinct=10_000)
PAPERS_LINK = NetworkLink(0.005, 1000)
LINK = NetworkLink(0.002, 1e5)


def test_the_equations_as_computed_by_hand() -> None:
    # 500 tuples a second, each 5 ms and 100 bytes at 1000 bytes/s.
    assert simple_seconds(PAPER, PAPERS_LINK) == pytest.approx(500 * 0.105)
    # p = 1 - 0.9999^500 = 0.0487729; a partial tuple or request takes 15 ms, a full one 105 ms, and
    # 500 / 10000 of a full one 10 ms.
    wanted = 500 * (0.015 + 0.0487729 * 0.120) + 500 * (0.9512271 * 0.0487729 * 0.025)
    assert semijoin_seconds(PAPER, PAPERS_LINK) == pytest.approx(wanted, rel=1e-5)


def test_sides_that_differ_as_computed_by_hand() -> None:
    sides = Sides(rate_1=10, rate_2=20, window_1=2, window_2=1, full=50, partial=20, distinct=4)
    # p1 = 1 - (3/4)^2 = 7/16, p2 = 1/4; partial 2.2 ms, full 2.5 ms, half a full one 2.25 ms.
    wanted = 10 * (0.0022 + 0.25 * 0.0047) + 20 * (0.75 * 7 / 16 * (0.0022 + 0.00225))
    assert semijoin_seconds(sides, LINK) == pytest.approx(wanted)


def test_where_hardly_anything_matches_only_sizes_differ() -> None:
    """Section 5.1: for p near 0 the difference is that of a partial and a full tuple."""
    rare = replace(PAPER, distinct=1e9)
    difference = semijoin_seconds(rare, PAPERS_LINK) - simple_seconds(rare, PAPERS_LINK)
    assert difference == pytest.approx(500 / 1000 * (10 - 100), rel=1e-4)


def test_where_everything_matches_partial_tuples_and_requests_come_on_top() -> None:
    """Section 5.1: for p near 1 the difference is two messages of the size of a partial tuple."""
    often = replace(PAPER, distinct=2)
    difference = semijoin_seconds(often, PAPERS_LINK) - simple_seconds(often, PAPERS_LINK)
    assert difference == pytest.approx(2 * 500 * (0.005 + 10 / 1000), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "values", "rises"),
    [
        ("distinct", (600, 1000, 5000, 20_000, 1e6), False),
        ("full", (10, 50, 100, 400), True),
        ("partial", (5, 10, 50), True),
        ("window_2", (1, 10, 100, 1000), True),
        ("rate_1", (1, 10, 500), True),
        ("rate_2", (1, 10, 500), True),
    ],
)
def test_a_parameter_moves_the_seconds_one_way(name: str, values: Sequence[float], rises: bool) -> None:
    found = [semijoin_seconds(replace(PAPER, **{name: value}), PAPERS_LINK) for value in values]
    assert found == sorted(found, reverse=not rises)
    assert len(set(found)) == len(found)


def test_equal_sizes_are_never_cheaper_in_parts() -> None:
    for distinct in (2, 500, 1e9):
        sides = replace(PAPER, partial=PAPER.full, distinct=distinct)
        assert semijoin_seconds(sides, PAPERS_LINK) >= simple_seconds(sides, PAPERS_LINK)
