"""The mirror window: what a worker has fetched is found again, in bounded space, and may be lost."""

import resource
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from wjoin.executor.sites import mirror as mirror_module
from wjoin.executor.sites.mirror import MOST_FILES, Mirror
from wjoin.executor.sites.stream import at_site, is_partial, numbered, sites_of, whole_numbers
from wjoin.sites.protocol import ROW

ROOMY = SimpleNamespace(total=1 << 40, free=1 << 39, used=1 << 39)


@pytest.fixture(scope="module", autouse=True)
def roomy_disk() -> Iterator[None]:
    """The disk has room, however full that of this machine is: a mirror leaves a tenth of it free."""
    with patch.object(mirror_module.shutil, "disk_usage", lambda _: ROOMY):
        yield


def tuples(numbers: list[int], width: int = 1) -> pa.RecordBatch:
    own = sorted(set(numbers))
    texts = [f"{n}" * width for n in own]
    return pa.RecordBatch.from_pydict({ROW: pa.array(own, pa.int64()), "text": texts})


def found_in(mirror: Mirror, numbers: list[int]) -> tuple[dict[int, str], list[int]]:
    batches, missing = mirror.find(np.unique(np.array(numbers, np.int64)))
    rows = [row for batch in batches for row in batch.to_pylist()]
    return {row[ROW]: row["text"] for row in rows}, missing.tolist()


NUMBERS = st.lists(st.integers(0, 60), min_size=1, max_size=20)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.lists(NUMBERS, min_size=1, max_size=2 * MOST_FILES), asked=NUMBERS)
def test_what_was_kept_is_found_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, kept: list[list[int]], asked: list[int]
) -> None:
    mirror = Mirror(tmp_path_factory.mktemp("mirror") / "0")
    for numbers in kept:
        mirror.keep(tuples(numbers))
    known = {n for numbers in kept for n in numbers}
    found, missing = found_in(mirror, asked)
    assert found == {n: str(n) for n in set(asked) & known}
    assert missing == sorted(set(asked) - known)
    assert len(mirror._files()) <= MOST_FILES


def test_space_is_bounded_and_the_oldest_go_first(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "0", most_bytes=100_000)
    for number in range(200):
        mirror.keep(tuples([number], width=4000))
        assert sum(path.stat().st_size for path in mirror._files()) <= 100_000
    found, missing = found_in(mirror, list(range(200)))
    assert len(found) > 3
    assert min(found) > max(missing)


def test_files_that_are_gone_or_broken_are_fetched_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mirror = Mirror(tmp_path / "0")
    mirror.keep(tuples([1, 2, 3]))
    mirror.keep(tuples([4]))
    newest, oldest = mirror._files()
    oldest.write_bytes(b"nothing of the kind")
    found, missing = found_in(mirror, [1, 2, 3, 4])
    assert (list(found), missing) == ([4], [1, 2, 3])
    assert "fetched again" in caplog.text
    newest.unlink()
    assert found_in(mirror, [4]) == ({}, [4])


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Half a file on a full disk would take the last space of whoever cannot do without."""
    mirror = Mirror(tmp_path / "0")
    mirror.keep(tuples([1]))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        mirror.keep(tuples([2], width=1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot be used" in caplog.text
    assert [*(tmp_path / "0").iterdir()] == mirror._files()
    assert found_in(mirror, [1, 2]) == ({1: "1"}, [2])


def test_space_is_left_to_others_on_a_disk_that_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = 1_000_000

    def usage(_: object) -> SimpleNamespace:
        return SimpleNamespace(total=1_000_000, free=free)

    monkeypatch.setattr(mirror_module.shutil, "disk_usage", usage)
    mirror = Mirror(tmp_path / "0")
    for number in range(4):
        mirror.keep(tuples([number], width=20_000))
    assert found_in(mirror, [0, 1, 2, 3])[1] == []
    # 20 kB short of what is left to others: the oldest go, and make room for the next.
    free = 80_000
    mirror.keep(tuples([4], width=20_000))
    assert found_in(mirror, [0, 1, 2, 3, 4])[1] == [0, 1]
    free = 0
    mirror.keep(tuples([5], width=20_000))
    assert mirror._files() == []


def test_without_a_folder_nothing_is_kept() -> None:
    mirror = Mirror(None)
    mirror.keep(tuples([1]))
    assert found_in(mirror, [1]) == ({}, [1])


@given(st.integers(0, (1 << 14) - 1), st.lists(st.integers(0, (1 << 48) - 1), max_size=20), st.booleans())
def test_numbers_tell_site_row_and_way(site: int, numbers: list[int], partial: bool) -> None:
    own = np.array(numbers, np.int64)
    told = numbered(site, own, partial=partial)
    assert is_partial(told).tolist() == [partial] * len(numbers)
    whole = whole_numbers(told)
    assert sites_of(whole).tolist() == [site] * len(numbers)
    assert at_site(whole).tolist() == numbers
