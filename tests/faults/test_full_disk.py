"""A disk that is full under a checkpoint: the query says so, and goes on with all rows once there is room."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import wjoin
from tests.faults.child import script
from tests.faults.killing import assert_more, assert_results, commits, committed, write_streams
from wjoin.grammar.errors import WJoinError

# Room for the first micro-batches.
FIRST = {"files": "300k", "spark": "450k"}


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of its own, without much room: where checkpoints are, or a folder that a test names."""
    place = tmp_path / getattr(request, "param", "checkpoints")
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.long
@pytest.mark.filterwarnings("default::wjoin.measured.beside.KeptWarning")
@pytest.mark.parametrize("home", ["files", "spark"])
def test_no_room_for_the_state(session: wjoin.Session, tmp_path: Path, disk: Path, home: str) -> None:
    write_streams(tmp_path, 12, 60)
    session.sql(f"SET wjoin.state = {home}")
    statements = script(tmp_path, None, "parquet").replace("CREATE ", "CREATE OR REPLACE ")

    def run(room: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={room}", str(disk)], check=True)
        session.run_script(statements, once=True, checkpoint=str(disk))

    for _ in range(2):
        with pytest.raises(WJoinError, match="No space left on device") as full:
            run(FIRST[home])
        # Either wjoin's own files or Spark's found no room.
        assert full.value.code in ("WJ718", "WJ704")
        assert full.value.help is not None
        assert "disk" in full.value.help and "start the query again" in full.value.help
    assert 0 < len(commits(tmp_path, "commits")) < 12
    run("100m")
    assert_results(tmp_path, committed(session.spark, tmp_path, "tracked"))


@pytest.mark.long
@pytest.mark.parametrize("disk", ["pairs"], indirect=True)
def test_no_room_for_a_sink_of_a_set(session: wjoin.Session, tmp_path: Path, disk: Path) -> None:
    write_streams(tmp_path, 8, 60)
    statements = script(tmp_path, None, "parquet", ["near", "pairs"]).replace("CREATE ", "CREATE OR REPLACE ")

    def run(room: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={room}", str(disk)], check=True)
        session.run_script(statements, once=True, checkpoint=str(tmp_path / "checkpoints"))

    for _ in range(2):
        with pytest.raises(WJoinError, match=r"the sink pairs could not be written: .*No space left") as full:
            run("60k")
        assert full.value.code == "WJ704"
    run("100m")
    assert_results(tmp_path, committed(session.spark, tmp_path, "tracked"))
    for sink in ("near", "pairs"):
        assert_more(tmp_path, sink, committed(session.spark, tmp_path, sink))
