"""The cache of slices on a machine's disks: it returns what was written, and may fail at any time."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wjoin.executor.spark import cache
from wjoin.executor.spark.cache import SPARE_BYTES, UNUSED_SECONDS, SliceCache
from wjoin.executor.state.slices import digest_of

DATA = b"a slice " * 1000
NAME = digest_of(DATA)


def content(kept: SliceCache, data: bytes = DATA) -> bytes | None:
    found = kept.get(digest_of(data), len(data))
    return None if found is None else found.to_pybytes()


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_slices_lie_in_all_folders_and_come_back(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    kept = SliceCache(folders)
    slices = [bytes([number]) * 100 for number in range(32)]
    for data in slices:
        kept.put(digest_of(data), data)
    assert [content(kept, data) for data in slices] == slices
    assert all(any(folder.iterdir()) for folder in folders)
    assert [content(SliceCache(folders), data) for data in slices] == slices
    for data in slices:
        kept.remove(digest_of(data))
    assert [content(kept, data) for data in slices] == [None] * 32
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_one_query_removes_what_another_has_and_both_go_on(tmp_path: Path) -> None:
    first, second = SliceCache([tmp_path]), SliceCache([tmp_path])
    first.put(NAME, DATA)
    second.put(NAME, DATA)
    mapped = second.get(NAME, len(DATA))
    first.remove(NAME)
    first.remove(NAME)
    assert mapped is not None
    assert mapped.to_pybytes() == DATA
    assert content(second) is None
    second.put(NAME, DATA)
    assert content(first) == DATA


def test_nothing_is_kept_where_spark_names_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    kept = cache.cache_of_this_process()
    kept.put(NAME, DATA)
    assert content(kept) is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    kept = cache.cache_of_this_process()
    kept.put(NAME, DATA)
    assert content(kept) == DATA
    assert cache.cache_of_this_process() is kept


@pytest.mark.parametrize("harm", ["shorter", "longer", "empty", "other", "a folder"])
@pytest.mark.parametrize("process", ["the one that wrote it", "another one"])
def test_a_file_that_is_not_what_was_written_is_absent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str, process: str
) -> None:
    kept = SliceCache([tmp_path])
    kept.put(NAME, DATA)
    path = tmp_path / NAME
    if harm == "a folder":
        path.unlink()
        path.mkdir()
    else:
        harmed = {"shorter": DATA[:-1], "longer": DATA + b"x", "empty": b"", "other": DATA[::-1]}[harm]
        (tmp_path / "beside").write_bytes(harmed)
        (tmp_path / "beside").replace(path)
    reading = kept if process == "the one that wrote it" else SliceCache([tmp_path])
    assert content(reading) is None
    assert content(reading) is None
    assert len(caplog.messages) == 1
    assert str(path) in caplog.text
    if harm != "a folder":
        reading.put(NAME, DATA)
        assert content(reading) == DATA


def test_the_folder_is_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "file"
    folder.write_text("here first")
    kept = SliceCache([folder])
    for _ in range(3):
        kept.put(NAME, DATA)
        assert content(kept) is None
        kept.remove(NAME)
    assert len(caplog.messages) == 1
    assert "so it is read from Spark" in caplog.text
    assert folder.read_text() == "here first"


def test_a_folder_that_was_removed_is_made_again_but_none_above_it(tmp_path: Path) -> None:
    """Spark removes its folders when an application ends: nothing comes back that nobody would remove."""
    folder = tmp_path / "of-spark" / "slices"
    folder.parent.mkdir()
    kept = SliceCache([folder])
    kept.put(NAME, DATA)
    (folder / NAME).unlink()
    folder.rmdir()
    assert content(kept) is None
    kept.put(NAME, DATA)
    assert content(kept) == DATA
    (folder / NAME).unlink()
    folder.rmdir()
    folder.parent.rmdir()
    kept.put(NAME, DATA)
    assert content(kept) is None
    assert not folder.parent.exists()


WRITES_TOO_MUCH = f"""
import resource, sys
from pathlib import Path
from wjoin.executor.spark.cache import SliceCache
from wjoin.executor.state.slices import digest_of
large, small = b"x" * 100_000, b"y" * 100
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, {resource.RLIM_INFINITY}))
kept = SliceCache([Path(sys.argv[1])])
for data in (large, small, large):
    kept.put(digest_of(data), data)
print([kept.get(digest_of(data), len(data)) is not None for data in (large, small)])
"""


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    """A process may write no files above 10,000 bytes: what cannot be written leaves nothing behind."""
    run = subprocess.run(
        [sys.executable, "-c", WRITES_TOO_MUCH, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[False, True]\n"
    assert run.stderr.count("so it is read from Spark") == 1
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [100]


def test_room_is_left_on_the_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = os.statvfs(tmp_path)
    more_than_there_is = disk.f_blocks * disk.f_frsize
    kept = SliceCache([tmp_path], spare=more_than_there_is)
    kept.put(NAME, DATA)
    assert content(kept) is None
    assert list(tmp_path.iterdir()) == []
    assert "almost full" in caplog.text
    assert more_than_there_is > SPARE_BYTES


def test_files_that_nobody_reads_go(tmp_path: Path) -> None:
    kept = SliceCache([tmp_path], sweep_seconds=0)
    slices = {name: name.encode() * 50 for name in ("unused", "read", "new")}
    paths = {name: tmp_path / digest_of(data) for name, data in slices.items()}
    for data in slices.values():
        kept.put(digest_of(data), data)
    # What a process that was killed has left is among them.
    paths["unfinished"] = tmp_path / f"{NAME}.1"
    paths["unfinished"].write_bytes(DATA)
    for name in ("unused", "unfinished"):
        aged(paths[name], UNUSED_SECONDS + 60)
    aged(paths["read"], UNUSED_SECONDS - 60)
    assert content(kept, slices["read"]) == slices["read"]
    aged(paths["new"], 60)
    written = paths["new"].stat().st_mtime
    assert content(kept, slices["new"]) == slices["new"]
    assert paths["new"].stat().st_mtime == written, "a file in use costs no write at each reading"
    kept.put(NAME, DATA)
    assert {path.name for path in tmp_path.iterdir()} == {paths["read"].name, paths["new"].name, NAME}
    assert time.time() - paths["read"].stat().st_mtime < UNUSED_SECONDS / 4


def test_the_folder_is_not_looked_through_at_every_slice(tmp_path: Path) -> None:
    kept = SliceCache([tmp_path])
    kept.put(NAME, DATA)
    aged(tmp_path / NAME, UNUSED_SECONDS + 60)
    kept.put(digest_of(b"next"), b"next")
    assert (tmp_path / NAME).exists()
