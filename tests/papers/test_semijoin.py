"""Semijoin streams: both algorithms find what the definition says, also in blocks over a site."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semijoin import crossed
from semijoin_settings import DEFAULT, SWEEPS, Setting, semijoin_seconds, simple_seconds
from semijoin_sockets import Rig, measure, predicted, rig
from semijoin_tuples import (
    ALGORITHMS,
    Arrived,
    Pairs,
    SemijoinJoin,
    Transmission,
    simulate,
    steady_semijoin_seconds,
)

from tests.tiers import examples

pytestmark = pytest.mark.long

arrivals = st.lists(st.tuples(st.sampled_from((1, 2)), st.integers(0, 3)), max_size=60)


def in_order(drawn: list[tuple[int, int]]) -> list[Arrived]:
    """Return tuples with the numbers that they have in their streams."""
    counts = {1: 0, 2: 0}
    found = []
    for stream, value in drawn:
        found.append(Arrived(stream, counts[stream], value))
        counts[stream] += 1
    return found


def by_definition(arriving: list[Arrived], window: int) -> Pairs:
    """Return every pair of which the earlier one is among the last of its stream as the later one comes."""
    found = Pairs()
    for place, new in enumerate(arriving):
        others = [each for each in arriving[:place] if each.stream != new.stream][-window:]
        for match in others:
            if match.value == new.value:
                found.add(*((new, match) if new.stream == 1 else (match, new)))
    return found


@given(arrivals, st.integers(1, 8))
@settings(max_examples=examples(200))
def test_both_algorithms_find_the_pairs_of_the_definition(drawn: list[tuple[int, int]], window: int) -> None:
    arriving, setting = in_order(drawn), Setting(window=window)
    for make in ALGORITHMS.values():
        join = make(setting, Transmission(setting.link))
        for each in arriving:
            (join.first if each.stream == 1 else join.second)(each)
        assert join.pairs == by_definition(arriving, window)


def test_a_tuple_that_matched_nothing_is_found_behind_one_that_did() -> None:
    """The paper's first match must be the newest one: the oldest is full here, and not all are."""
    setting = Setting(window=2)
    transmission = Transmission(setting.link)
    join = SemijoinJoin(setting, transmission)
    for each in (Arrived(2, 0, 7), Arrived(1, 0, 7), Arrived(2, 1, 8), Arrived(2, 2, 9), Arrived(1, 1, 7)):
        (join.first if each.stream == 1 else join.second)(each)
    bucket = join._mirror.buckets[7]
    assert [each.full for each in bucket] == [True, False]
    join.second(Arrived(2, 3, 7))
    assert join.pairs.count == 3


@pytest.mark.parametrize("distinct", [200, 1000, 10_000])
def test_the_simulation_takes_what_its_steps_lead_to(distinct: int) -> None:
    setting = replace(DEFAULT, distinct=distinct)
    spj, smj = (simulate(name, setting, 10.0) for name in ("SPJ", "SMJ"))
    assert spj.transmission == pytest.approx(simple_seconds(setting.sides, setting.link))
    assert smj.transmission == pytest.approx(steady_semijoin_seconds(setting), rel=0.04)
    assert smj.processing < 0.05 * smj.transmission


def test_equation_2_ships_too_little_where_few_tuples_match() -> None:
    """It has the mean of all values in place of that of those with a match."""
    assert semijoin_seconds(DEFAULT.sides, DEFAULT.link) < 0.9 * steady_semijoin_seconds(DEFAULT)


SMALL = replace(DEFAULT, window=100, rate=100.0, distinct=300, link_rate=20_000.0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rig(tmp_path_factory.mktemp("site"), [SMALL, replace(SMALL, distinct=30)]) as found:
        yield found


@pytest.mark.parametrize("distinct", [30, 300])
def test_blocks_over_a_site_take_about_the_bytes_that_were_expected(small: Rig, distinct: int) -> None:
    setting = replace(SMALL, distinct=distinct)
    expected = predicted(small.facts, setting)
    found = {name: measure(small, setting, name) for name in ("SPJ", "SMJ")}
    assert found["SPJ"].found == found["SMJ"].found
    assert found["SPJ"].found.count > 100
    for name, each in found.items():
        assert each.size == pytest.approx(expected[name].size, rel=0.1)
        assert each.seconds > 0.95 * each.size / (SMALL.link_rate * 100)


def test_a_crossing_is_found_between_points() -> None:
    assert crossed([1, 10, 100], np.array([1.0, 0.5, -0.5])) == pytest.approx(10**1.5)
    assert crossed([1, 10, 100], np.array([1.0, 0.5, 0.25])) is None


def test_every_sweep_passes_the_defaults() -> None:
    passing = [sweep for sweep in SWEEPS.values() if DEFAULT in map(sweep.at, sweep.values)]
    assert len(passing) == 5


def test_the_document_has_a_place_for_every_table() -> None:
    document = Path(__file__).resolve().parents[2] / "docs" / "papers" / "semijoin.md"
    text = document.read_text("utf-8")
    for part in SWEEPS:
        assert all(f"<!-- table {part}-{kind} -->" in text for kind in ("tuples", "blocks"))
        assert f"(semijoin-{part}.svg)" in text
