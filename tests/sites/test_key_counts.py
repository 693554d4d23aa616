"""Counts of join values by hash, and filters of buckets: how they travel, and what is refused."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sites.processes import BEGIN, Sites, put, rows_of, stream_of, wait_for_rows
from tests.tiers import examples
from wjoin.sites.failures import SiteError
from wjoin.sites.held import NOTHING, Extent, HeldRange
from wjoin.sites.key_counts import KeyCounts, bucket_of, in_sample
from wjoin.sites.key_index import column_hashes
from wjoin.sites.value_filter import ValueFilter

BITS = 8


def counted(keys: list[int], start: int = BEGIN, sample: int = 4) -> KeyCounts:
    times = start + np.arange(len(keys))
    extent = Extent(len(keys), 8 * len(keys), 0, None, start, start + len(keys), 0) if keys else NOTHING
    return KeyCounts.of(column_hashes(pa.array(keys, pa.int64())), times, BITS, sample, extent)


@settings(max_examples=examples(200))
@given(st.lists(st.integers(0, 40), max_size=80), st.lists(st.integers(0, 40), max_size=80))
def test_counts_add_up_and_travel(one, other):
    whole = KeyCounts.together([counted(one), counted(other, BEGIN + 500)])
    again = KeyCounts.decode(whole.encode(), BITS, len(one) + len(other))
    hashes = column_hashes(pa.array([*one, *other], pa.int64()))
    buckets = bucket_of(hashes, BITS)
    assert again.extent == whole.extent
    assert again.extent.rows == again.counts.sum() == len(buckets)
    assert np.bincount(again.buckets, again.counts, 1 << BITS).tolist() == (
        np.bincount(buckets, minlength=1 << BITS).tolist()
    )
    told = in_sample(buckets, 4)
    assert again.sample_hashes.tolist() == (hashes[told] & np.uint64(0xFFFFFFFF)).tolist()
    times = np.concatenate([BEGIN + np.arange(len(one)), BEGIN + 500 + np.arange(len(other))])
    assert again.sample_times.tolist() == times[told].tolist()


@settings(max_examples=examples(100))
@given(st.sets(st.integers(0, (1 << BITS) - 1)), st.lists(st.none() | st.integers(-9, 500), max_size=60))
def test_a_filter_of_buckets_passes_what_falls_into_them(buckets, values):
    filter = ValueFilter.of_buckets(np.array(sorted(buckets), np.int64), BITS, "number")
    again = ValueFilter.decode(filter.encode())
    assert (again.digest, again.count, again.exact) == (filter.digest, len(buckets), False)
    places = bucket_of(column_hashes(pa.array(values, pa.int64())), BITS).tolist()
    wanted = [value is not None and at in buckets for value, at in zip(values, places, strict=True)]
    assert again.contains(pa.array(values, pa.int64())).tolist() == wanted
    assert again.hashes is None


def test_wrong_bytes_are_refused_and_never_more_than_was_asked_for():
    chance = random.Random(49)
    good = counted([chance.randrange(99) for _ in range(300)]).encode()
    known = ValueFilter.of_buckets(np.arange(0, 200, 3), BITS, "number").encode()
    refused = 0
    for _ in range(3000):
        for data in (good, known):
            wrong = bytearray(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data)
            for _ in range(chance.randint(1, 4)):
                if wrong:
                    wrong[chance.randrange(len(wrong))] = chance.randrange(256)
            try:
                if data is good:
                    found = KeyCounts.decode(bytes(wrong), BITS, 300)
                    assert found.counts.sum() <= 300
                    assert len(found.buckets) == 0 or 0 <= found.buckets[0] <= found.buckets[-1] < 1 << BITS
                else:
                    assert ValueFilter.decode(bytes(wrong), most_bytes=100_000).size < 200_000
            except SiteError as error:
                refused += error.kind in ("broken", "limit")
    assert refused > 1500


def test_a_site_counts_what_it_has(sites: Sites):
    site = sites.start(stream_of(sites.folder / "in"))
    put(rows_of(0, 3000), sites.folder / "in" / "a.parquet")
    client = site.client()
    lineage = wait_for_rows(client, "a", 3000)
    asked = {"ceiling": BEGIN + 2_000_000, "low": BEGIN + 500_000, "bits": 10, "sample": 2}
    found = client.counts("a", lineage, "id", 100, 2900, **asked)
    hashes = column_hashes(pa.array(np.arange(500, 2001) * 7919 % 1000))
    buckets, counts = np.unique(bucket_of(hashes, 10), return_counts=True)
    assert (found.buckets.tolist(), found.counts.tolist()) == (buckets.tolist(), counts.tolist())
    assert len(found.sample_hashes) == in_sample(bucket_of(hashes, 10), 2).sum()
    assert (found.extent.rows, found.extent.late, found.extent.ahead) == (2800, 400, 899)
    some = ValueFilter.of_buckets(buckets[::3], 10, "number")
    ranges = [HeldRange(500, 2001)]
    rows = client.reduced("a", lineage, ranges, "id", ["id"], filter=None, keys=some, high=None)
    assert sum(each.num_rows for each in rows) == counts[::3].sum()
    for wrong in ({"bits": 30}, {"bits": 0}, {"sample": -1}):
        with pytest.raises(SiteError, match="cannot be"):
            client.counts("a", lineage, "id", 0, 10, **{**asked, **wrong})
    with pytest.raises(SiteError, match="no column other"):
        client.counts("a", lineage, "other", 0, 10, **asked)
    with pytest.raises(SiteError, match="no filter of values of the type double"):
        client.counts("a", lineage, "price", 0, 10, **asked)
