"""However rows of two streams at sites are cut into micro-batches and readers begin anew: a part comes, once.

The sites are in memory (tests/kit/memory_sites.py).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.memory_sites import Memory, Rows, reached
from tests.tiers import examples
from wjoin.executor.sites.likely import Chooser
from wjoin.executor.sites.likely_offsets import Likely, LikelySide, Reached
from wjoin.executor.sites.missed import pairs_by_key
from wjoin.sites.protocol import SiteAddress
from wjoin.sites.value_filter import ValueFilter

SECOND = 1_000_000
CEILING = 1 << 62
WINDOW = 10 * SECOND


@dataclass(frozen=True)
class Way:
    """How rows come: so many ``keys``, how far back their times go, a step of readings and restarts."""

    seed: int
    keys: int
    disorder: float
    batches: int
    error: float
    restarts: frozenset[tuple[int, int]]
    most: int


ways = st.builds(
    Way,
    st.integers(0, 1 << 30),
    st.sampled_from([3, 40, 4000]),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.integers(2, 12),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.frozensets(st.tuples(st.integers(0, 11), st.integers(0, 1)), max_size=6),
    st.sampled_from([7, 60, 1000]),
)


def sides_of(some: Sequence[Sequence[Rows]]) -> list[Rows]:
    return [(np.concatenate([e[0] for e in own]), np.concatenate([e[1] for e in own])) for own in some]


Numbered = list[tuple[int, int]]


def run(
    way: Way, folder: Path, sites: list[Memory], addresses: tuple[SiteAddress, ...]
) -> tuple[Numbered, Numbered]:
    """Bring rows micro-batch by micro-batch; return site and number of those of both streams that come."""
    # Where few rows come at once, one site is ahead of the other one.
    ahead = way.batches if way.most < 1000 else 1
    delay = int((way.disorder + ahead) * SECOND)
    one, other = (LikelySide(addresses, name, "k", delay, 20.0) for name in ("r", "s"))
    asked = Likely((one, other), WINDOW, WINDOW, CEILING, way.error, 14, 4, str(folder))
    choosers = [Chooser(asked, 0), Chooser(asked, 1)]
    places = [each.begin(latest=False) for each in choosers]
    random = np.random.default_rng(way.seed)
    came: tuple[Numbered, Numbered] = ([], [])
    for batch in range(way.batches + 60 * way.batches // way.most + 4):
        if batch < way.batches:
            for site in sites:
                for name in ("r", "s"):
                    count = int(random.integers(0, 60))
                    times = SECOND * (batch + random.random(count) - way.disorder * random.random(count))
                    site.put(name, random.integers(0, way.keys, count), times.astype(np.int64))
        for own in (0, 1):
            if (batch, own) in way.restarts:
                choosers[own] = Chooser(asked, own)
            begin, name = places[own], ("r", "s")[own]
            ends = [
                min(site.next(name, "x"), at + way.most) for site, at in zip(sites, begin.next, strict=True)
            ]
            end = choosers[own].after(begin, ends)
            if end is begin:
                continue
            end = Reached.of_json(json.loads(json.dumps(end.to_json())))
            brought, again = (
                sorted(
                    (part.site, int(number))
                    for part in reader.parts(begin, end)
                    for number in sites[part.site].reduced(name, part.ranges, ValueFilter.decode(part.filter))
                )
                for reader in (choosers[own], Chooser(asked, own))
            )
            # A micro-batch that another process repeats brings the same.
            assert again == brought
            came[own].extend(brought)
            places[own] = end
    return came


@pytest.mark.long
@settings(
    max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(way=ways)
def test_rows_come_once_and_no_result_is_lost_that_was_not_allowed(
    way: Way, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sites = [Memory(), Memory()]
    with reached(sites) as addresses:
        came = run(way, tmp_path_factory.mktemp("told"), sites, addresses)
    for own in came:
        assert len(set(own)) == len(own)
    rows = [[site.rows[name] for site in sites] for name in ("r", "s")]
    some = [
        [
            tuple(column[[number for at, number in own if at == place]] for column in site.rows[name])
            for place, site in enumerate(sites)
        ]
        for name, own in zip(("r", "s"), came, strict=True)
    ]
    (left, right), (one, other) = sides_of(rows), sides_of(some)
    exact = pairs_by_key(left, right, WINDOW, WINDOW)[1].sum()
    found = pairs_by_key(one, other, WINDOW, WINDOW)[1].sum()
    assert found <= exact
    if way.error == 0 and not way.restarts and way.most == 1000:
        assert found == exact
    if exact > 500 and way.error <= 0.1:
        assert found >= 0.6 * exact
