"""What it costs to ship a stream, and matches of keys that are not uniform."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.grammar.spans import Span
from wjoin.planner.catalog import Estimate, Origin, Relation, SiteFacts
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.cost.semijoin import (
    CALL_BYTES,
    NetworkLink,
    Shipment,
    Shipments,
    match_probability,
)
from wjoin.planner.explain.cost import shipment_lines
from wjoin.planner.explain.describe import describe
from wjoin.planner.plan.physical import Shipping
from wjoin.sources.site_streams import slow_link

LINK = NetworkLink(0.002, 1e5)


def test_a_message_costs_its_latency_and_its_bytes() -> None:
    assert NetworkLink(0.01, 200).seconds(3, 100) == pytest.approx(0.53)


@pytest.mark.parametrize(("window", "distinct"), [(1, 1), (1, 2), (3, 7), (50, 20)])
def test_a_match_is_as_likely_as_values_drawn_at_random_make_it(window: int, distinct: int) -> None:
    drawn = np.random.default_rng(3).integers(0, distinct, (200_000, window))
    assert match_probability(window, distinct) == pytest.approx((drawn == 0).any(axis=1).mean(), abs=0.005)


# What wjoin ships: blocks.

COLUMNS = {"k": "bigint", "payload": "binary"}
RATE, WINDOW, DISTINCT = 1000.0, 0.5, 200
SQL = f"SELECT A.payload, B.k FROM a A, b B WINDOW = {WINDOW} s WHERE A.k = B.k"


def relation(heaviest: float | None = None, distinct: float = DISTINCT, **known: float) -> Relation:
    shares = {} if heaviest is None else {"heaviest.k": heaviest}
    return stream_of(COLUMNS, {"rate": RATE, "distinct.k": distinct, **shares, **known})


def at_site(found: Relation, payload: float = 1000.0, link: NetworkLink = LINK) -> Relation:
    latency, bandwidth = (Estimate(each, Origin.MEASURED) for each in (link.latency, link.bandwidth))
    return replace(found, site=SiteFacts({"ts": 8.0, "k": 8.0, "payload": payload}, latency, bandwidth))


def shipments(*relations: Relation, interval: float = 1.0) -> Shipments:
    (found,) = plan_over(SQL, relations, costs=CostSettings(interval=interval)).shipments
    return found


def way(found: Shipments, shipping: Shipping) -> Shipment:
    return next(each for each in found.ways if each.shipping is shipping)


def skewed(random: np.random.Generator, heaviest: float, count: int) -> np.ndarray:
    """Return keys of which 0 has the given share, the others the same."""
    others = random.integers(1, DISTINCT, count)
    return np.where(random.random(count) < heaviest, 0, others)


def matched_by_force(heaviest: float, other_heaviest: float, rows: int, samples: int = 4000) -> float:
    """Return the share of keys that are among so many others, drawn anew each time."""
    random = np.random.default_rng(11)
    own = skewed(random, heaviest, samples)
    met = skewed(random, other_heaviest, samples * rows).reshape(samples, rows)
    return float((met == own[:, None]).any(axis=1).mean())


@pytest.mark.parametrize("heaviest", [0.05, 0.2, 0.5, 0.8])
def test_matches_of_skewed_keys_are_as_brute_force_finds_them(heaviest: float) -> None:
    """A row meets the rows of half a second on either side of it; of uniform keys far more would match."""
    rows = round(2 * WINDOW * RATE)
    found = shipments(at_site(relation(heaviest)), relation(heaviest)).matched.value
    wanted = matched_by_force(heaviest, heaviest, rows)
    assert found == pytest.approx(wanted, rel=0.03)
    assert abs(match_probability(rows, DISTINCT) - wanted) > abs(found - wanted)


@pytest.mark.parametrize(("own", "other"), [(0.5, 1 / DISTINCT), (1 / DISTINCT, 0.9), (0.9, 0.95)])
def test_streams_need_not_be_skewed_alike(own: float, other: float) -> None:
    relations = at_site(relation(own)), relation(other, rate=100.0)
    found = shipments(*relations).matched.value
    wanted = matched_by_force(own, other, rows=round(2 * WINDOW * 100))
    assert found == pytest.approx(wanted, rel=0.05, abs=0.01)
    uniform = match_probability(2 * WINDOW * 100, DISTINCT)
    assert abs(uniform - wanted) > abs(found - wanted)


def test_keys_that_are_not_skewed_match_as_the_paper_has_it() -> None:
    found = shipments(at_site(relation()), relation()).matched.value
    assert found == pytest.approx(match_probability(1000, DISTINCT), rel=0.001)


def test_whole_rows_are_one_message_of_a_micro_batch_and_all_their_bytes() -> None:
    found = shipments(at_site(relation()), relation(), interval=0.25)
    whole = way(found, Shipping.FULL)
    assert whole.messages == pytest.approx(4)
    assert whole.seconds == pytest.approx(LINK.seconds(whole.messages, whole.size))
    # A number, a time, a key and a payload; and what a call takes.
    assert whole.size == pytest.approx(RATE * (1 + 8 + 8 + 1000) + 4 * CALL_BYTES)


def test_partial_tuples_and_requests_as_computed_by_hand() -> None:
    found = shipments(at_site(relation(matched=0.1)), relation(), interval=0.25)
    partial = way(found, Shipping.PARTIAL)
    # One call for partial tuples, one for the full ones of a micro-batch, whose numbers take four bytes each.
    assert partial.messages == pytest.approx(8)
    assert partial.size == pytest.approx(RATE * 17 + 0.1 * RATE * (4 + 1000) + 8 * CALL_BYTES)


def test_partial_tuples_grow_with_what_matches_until_whole_rows_are_cheaper() -> None:
    found = [shipments(at_site(relation(matched=share)), relation()) for share in (0.0, 0.01, 0.1, 0.5, 1.0)]
    sizes = [way(each, Shipping.PARTIAL).size for each in found]
    assert sizes == sorted(sizes)
    assert [each.chosen for each in found[:3]] == [Shipping.PARTIAL] * 3
    assert found[-1].chosen is Shipping.FULL
    assert sizes[-1] > way(found[-1], Shipping.FULL).size


def test_a_request_that_saves_less_than_its_latency_is_not_made() -> None:
    slow = NetworkLink(5.0, 1e9)
    found = shipments(at_site(relation(matched=0.5), link=slow), relation())
    assert found.chosen is Shipping.FULL
    partial, whole = (way(found, each) for each in (Shipping.PARTIAL, Shipping.FULL))
    assert partial.size < whole.size
    assert partial.seconds > whole.seconds


@pytest.mark.parametrize(("bandwidth", "keeps_up"), [(2e6, True), (1e6, False)])
def test_a_link_that_cannot_keep_up_is_told(bandwidth: float, keeps_up: bool) -> None:
    streams = (at_site(relation(matched=1.0), link=NetworkLink(0.002, bandwidth)), relation())
    planned = plan_over(SQL, streams)
    (found,) = planned.shipments
    assert found.keeps_up is keeps_up
    assert found.ways[0].seconds == pytest.approx(RATE * 1000 / bandwidth, rel=0.15)
    told = [each for each in shipment_lines(describe(planned)) if "the link is too slow" in each]
    assert len(told) == (not keeps_up)
    warning = slow_link("a", found, Span(0, 1))
    assert warning.code == "WJ815"
    assert "1 message) take" in warning.message


def test_a_stream_that_is_not_at_a_site_is_not_shipped() -> None:
    assert plan_over(SQL, [relation(), relation()]).shipments == ()
