"""``wjoin prepare``: Spark starts from an archive of its classes, and from nothing that is not whole."""

import contextlib
import os
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import run_python
from wjoin.grammar.errors import WJoinError
from wjoin.spark.class_archive import archive_name, reading_options
from wjoin.spark.preparing import leave_preparing

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

STARTED = """
import wjoin
from pyspark import SparkContext

session = wjoin.connect()
assert session.range(3).count() == 3
maps = open(f"/proc/{SparkContext._gateway.jvm.java.lang.ProcessHandle.current().pid()}/maps").read()
print(sum(".jsa" in line and "wjoin" in line for line in maps.splitlines()) > 0)
"""


def run(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this Python in the folder of some caches, and with them."""
    return run_python(cache, *arguments, XDG_CACHE_HOME=str(cache))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An archive that the command has made."""
    cache = tmp_path_factory.mktemp("cache")
    done = run(cache, "-m", "wjoin.cli", "prepare")
    assert done.returncode == 0, done.stderr
    # Nothing else is left there.
    (file,) = (cache / "wjoin").iterdir()
    assert f"wrote {file} (" in done.stdout
    assert (cache / "wjoin").stat().st_mode & 0o077 == 0
    yield file
    file.unlink(missing_ok=True)


def test_spark_starts_from_the_archive_and_says_nothing_of_it(archive: Path):
    done = run(archive.parents[1], "-c", STARTED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_an_archive_with_other_classes_in_front_is_left_alone(archive: Path, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "other.jar", "w") as classes:
        classes.writestr("other.txt", "")
    given = f'connect(**{{"spark.driver.extraClassPath": "{tmp_path / "other.jar"}"}})'
    done = run(archive.parents[1], "-c", STARTED.replace("connect()", given))
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_an_archive_that_has_been_cut_off_is_left_alone(archive: Path, tmp_path: Path):
    """Java would crash on it."""
    (tmp_path / "wjoin").mkdir()
    with archive.open("rb") as whole:
        (tmp_path / "wjoin" / archive.name).write_bytes(whole.read(archive.stat().st_size // 2))
    done = run(tmp_path, "-c", STARTED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


PREPARING = "from wjoin.spark.preparing import leave_preparing; leave_preparing(None)"


def in_background(cache: Path) -> list[int]:
    """The processes that prepare a cache."""
    wanted = f"XDG_CACHE_HOME={cache}".encode()
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            prepares = (each / "cmdline").read_bytes().endswith(b"wjoin.cli\0prepare\0")
            if prepares and wanted in (each / "environ").read_bytes().split(b"\0"):
                found.append(int(each.name))
    return found


def test_the_first_session_leaves_it_to_a_process_of_the_lowest_priority(tmp_path: Path):
    """Not waited for: on a busy machine it has no time at all."""
    first = run_python(tmp_path, "-c", PREPARING, XDG_CACHE_HOME=str(tmp_path), WJOIN_PREPARE="on")
    processes = in_background(tmp_path)
    try:
        second = run_python(tmp_path, "-c", PREPARING, XDG_CACHE_HOME=str(tmp_path), WJOIN_PREPARE="on")
        (process,) = processes
        assert os.getpriority(os.PRIO_PROCESS, process) == 19
        assert first.stderr.startswith("wjoin: preparing faster starts ")
        assert (second.stdout, second.stderr) == ("", "")
        assert in_background(tmp_path) == processes
    finally:
        for each in processes:
            os.killpg(each, signal.SIGKILL)


def test_it_is_left_where_somebody_has_said_so(tmp_path: Path):
    done = run_python(tmp_path, "-c", PREPARING, XDG_CACHE_HOME=str(tmp_path), WJOIN_PREPARE="off")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(WJoinError, match="known: on, off"):
        leave_preparing("never")


def test_there_is_nothing_to_start_from_where_nothing_was_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert reading_options() == ""


def test_a_folder_that_spark_would_split_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two words"))
    assert archive_name() is None


def test_another_java_has_an_archive_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = set()
    for home in ("one", "two"):
        (tmp_path / home / "bin").mkdir(parents=True)
        (tmp_path / home / "bin" / "java").write_text(home)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
        names.add(archive_name())
    assert len(names) == 2
    assert None not in names
