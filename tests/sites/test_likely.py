"""Which rows of two streams at sites are brought: none twice, and it is known what is missed."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sites.processes import BEGIN, Process, Sites, put, wait_for_rows
from tests.tiers import examples, tiers
from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.likely import Chooser
from wjoin.executor.sites.likely_choice import Goal, worthwhile
from wjoin.executor.sites.likely_offsets import Likely, LikelySide, Reached
from wjoin.executor.sites.likely_pairs import Offer, Sparse, Windows
from wjoin.executor.sites.missed import Missed, pairs_by_key
from wjoin.sites.held import Extent
from wjoin.sites.key_counts import KeyCounts
from wjoin.sites.key_index import column_hashes
from wjoin.sites.protocol import SiteAddress
from wjoin.sites.value_filter import ValueFilter

SECOND = 1_000_000
CEILING = 1 << 62

some_rows = st.lists(st.integers(0, 30), min_size=64, max_size=64).map(np.array)


def offered(one: np.ndarray, other: np.ndarray) -> Offer:
    """Return what a choice may bring where so many rows of each bucket are new."""
    buckets = np.flatnonzero(one * other)
    pairs = Sparse(buckets, (one * other)[buckets].astype(float))
    rows = one[buckets].astype(float), other[buckets].astype(float)
    return Offer(pairs, pairs, rows, (0, 0), float(one.sum() + other.sum()))


@settings(max_examples=examples(200))
@given(some_rows, some_rows, st.floats(0, 0.9))
def test_the_worthiest_buckets_are_taken_until_enough_results_are_there(one, other, error):
    offer = offered(one, other)
    found = worthwhile(offer, (1, 3), error=error)
    results = one * other
    assert (results[found] > 0).all()
    assert results[found].sum() >= (1 - error) * results.sum() - 1e-6
    if error == 0:
        assert len(found) == len(offer.gain.buckets)
    assert np.isin(found, worthwhile(offer, (1, 3), error=error / 2)).all()
    left = np.setdiff1d(offer.gain.buckets, found)
    worth = results / np.maximum(one + 3 * other, 1)
    if len(found) and len(left):
        assert worth[found].min() >= worth[left].max() - 1e-9


@settings(max_examples=examples(200))
@given(some_rows, some_rows, st.floats(0, 1.5))
def test_no_more_rows_come_than_are_asked_for(one, other, messages):
    found = worthwhile(offered(one, other), (1, 1), error=None, messages=messages)
    assert (one + other)[found].sum() <= messages * (one + other).sum() + 1e-6
    if messages >= 1:
        assert len(found) == np.count_nonzero(one * other)


def test_what_was_missed_too_much_is_made_up_for():
    goal = Goal(0.1)
    assert goal.aimed((0, 0), 10) == pytest.approx(0.1)
    assert goal.aimed((20, 100), 50) < 0.1 < goal.aimed((5, 100), 50)
    assert 0 < goal.aimed((1e9, 1e9), 1) < goal.aimed((0, 1e9), 1) <= 0.2
    assert Goal(None, 0.5).aimed((80, 100), 100) < 0.5


def keyed(
    random: np.random.Generator, rows: int, skew: float, second: int, first: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return keys and times of a second of rows: the ``first`` key is the most frequent, then the next."""
    weights = np.arange(1, 2001) ** -skew
    keys = first + np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(rows))
    return keys, BEGIN + second * SECOND + np.sort(random.integers(0, SECOND, rows))


@pytest.mark.parametrize("skew", tiers([0.0, 0.4, 0.8, 1.2], long=[0.0, 0.4, 0.8]))
def test_what_is_missed_is_inside_of_the_interval(skew):
    """In 95 % of runs, more or less, whichever keys are frequent; frequent ones are not always brought."""
    runs, inside, shares = 40, 0, []
    for seed in range(runs):
        random = np.random.default_rng([seed, 7])
        window = SECOND, SECOND, 4 * SECOND, 12
        kinds = [(Windows(*window, 1, Sparse()), Missed(*window, sample), sample) for sample in (8, 1, 1)]
        rows: list[list[tuple[np.ndarray, np.ndarray]]] = [[], []]
        for second in range(6):
            for stream in (0, 1):
                keys, times = keyed(random, 400, skew, second, 10_000 * seed)
                hashes = column_hashes(pa.array(keys))
                extent = Extent(400, 1, 0, None, int(times.min()), int(times.max()), 0)
                rows[stream].append((hashes.view(np.int64) & 0xFFFFFFFF, times))
                for windows, missed, sample in kinds:
                    counts = KeyCounts.of(hashes, times, 12, sample, extent)
                    windows.add(stream, windows.number, counts)
                    missed.add(stream, windows.number, counts, windows.since)
            seen = BEGIN + (second + 1) * SECOND
            for (windows, missed, _), share in zip(kinds, (0.3, 0.3, 1.0), strict=True):
                offer, number = windows.offer(seen), windows.number
                chosen = worthwhile(offer, (1, 1), error=share)
                told = windows.settle(offer, chosen, seen)
                missed.settle(number, chosen, offer.lows, seen, told)
        sampled, exact, all_missed = (missed for _, missed, _ in kinds)
        sides = [tuple(map(np.concatenate, zip(*each, strict=True))) for each in rows]
        pairs = pairs_by_key(sides[0], sides[1], SECOND, SECOND)[1].sum()
        assert (round(all_missed.missing.results), all_missed.missing.spread) == (pairs, 0)
        assert 0 < exact.missing.results < pairs
        assert round(exact.missing.results + exact.found) == pairs
        true = exact.missing.results / pairs
        share, low, high = sampled.missing.error(sampled.found)
        inside += low <= true <= high
        shares.append((share, true))
    assert inside >= 0.95 * runs - 2
    told, true = np.mean(shares, axis=0)
    assert told == pytest.approx(true, rel=0.1)


def test_what_waits_for_rows_that_have_come_is_found_with_the_next_choice():
    """A bucket is brought, then left, then brought again: all of its pairs have come, as counts say."""
    windows, found, missed = Windows(4 * SECOND, 4 * SECOND, 8 * SECOND, 12, 1, Sparse()), 0.0, 0.0
    bucket, none = np.array([5]), np.empty(0, np.int64)
    for number, chosen in enumerate((True, True, True, False, True)):
        begin = BEGIN + number * SECOND
        seen = begin + SECOND - 1
        for stream in (0, 1):
            counts = KeyCounts(Extent(10, 1, 0, None, begin, seen, 0), bucket, np.array([10]), none, none)
            windows.add(stream, windows.number, counts)
        there, lost = windows.settle(windows.offer(seen), bucket if chosen else none, seen)
        found, missed = found + there.values.sum(), missed + lost.values.sum()
        assert missed == pytest.approx(0 if chosen else 700, abs=1)
    # Only a few pairs of the first and the last second are too far apart.
    assert found == pytest.approx(2500, rel=0.05)


def started(sites: Sites, number: int) -> Process:
    streams = ""
    for name in ("r", "s"):
        folder = sites.folder / f"{name}{number}"
        folder.mkdir(parents=True)
        streams += f'[streams.{name}]\nsource = "{folder}"\ntime = "ts"\nkey = ["k"]\npoll = "20 ms"\n'
        streams += 'window = "1 hour"\n'
    return sites.start(streams, head=f'data = "{sites.folder}/data{number}"')


def brought(choosers: Sequence[Chooser], own: int, begin: Reached, end: Reached) -> list[tuple]:
    """Return what a micro-batch brings: site, number, key and time of each row."""
    found = []
    side = choosers[own].likely.sides[own]
    for part in choosers[own].parts(begin, end):
        filter = ValueFilter.decode(part.filter)
        asked = (side.stream, part.lineage, part.ranges, "k", ["k", "ts"])
        client = client_of(side.sites[part.site])
        for block in client.reduced(*asked, filter=None, keys=filter, high=CEILING):
            numbers, keys = block.column(0).to_pylist(), block.column("k").to_pylist()
            times = block.column("ts").cast(pa.int64()).to_pylist()
            found += [(part.site, *row) for row in zip(numbers, keys, times, strict=True)]
    return found


@pytest.mark.long
@pytest.mark.parametrize(("error", "alone"), [(0.0, False), (0.1, True), (0.1, False)])
def test_no_row_comes_twice_and_what_probably_matches_comes_in_time(
    sites: Sites, error: float, alone: bool
) -> None:
    """Readers of both streams begin anew with every third micro-batch, from what a checkpoint has."""
    random = np.random.default_rng(4)
    running = [started(sites, number) for number in range(2)]
    addresses = tuple(SiteAddress(each.url) for each in running)
    one, other = (LikelySide(addresses, name, "k", 0, 20.0) for name in ("r", "s"))
    folder = sites.folder / "told"
    folder.mkdir()
    likely = Likely((one, other), SECOND, SECOND, CEILING, error, 12, 8, None if alone else str(folder))
    choosers = [Chooser(likely, 0), Chooser(likely, 1)]
    places: list[Reached | None] = [None, None]
    came: list[list[tuple]] = [[], []]
    rows: list[list[tuple]] = [[], []]
    for batch in range(9):
        for number, site in enumerate(running):
            for own, name in enumerate(("r", "s")):
                keys, times = keyed(random, 60, 1.0, batch)
                table = pa.table({"k": keys, "ts": pa.array(times, pa.timestamp("us", "UTC"))})
                put(table, sites.folder / f"{name}{number}" / f"{batch:03}.parquet")
                wait_for_rows(site.client(), name, 60 * (batch + 1))
                rows[own] += zip(keys.tolist(), times.tolist(), strict=True)
        if batch % 3 == 2:
            # What is planned anew, by another rate, has other buckets; those of the checkpoint count.
            anew = replace(likely, bits=11)
            choosers = [Chooser(anew, 0), Chooser(anew, 1)]
        for own in (0, 1, 0, 1):
            begin = places[own] or choosers[own].begin(latest=False)
            ends = [60 * (batch + 1)] * 2
            end = choosers[own].after(begin, ends)
            if end is not begin:
                end = Reached.of_json(json.loads(json.dumps(end.to_json())))
                came[own] += brought(choosers, own, begin, end)
            places[own] = end
    for each in came:
        assert len({row[:2] for row in each}) == len(each)
    sides = [[np.array(each, np.int64) for each in zip(*own, strict=True)] for own in rows]
    got = [[np.array(each, np.int64) for each in zip(*own, strict=True)][2:] for own in came]
    exact, found = (pairs_by_key(a, b, SECOND, SECOND)[1].sum() for a, b in (sides, got))
    assert found <= exact
    if error == 0:
        assert found == exact
    else:
        assert (1 - 2 * error) * exact <= found < exact
        assert sum(map(len, came)) < 0.7 * sum(map(len, rows))
