"""A disk that is full under a checkpoint: the query says so, and goes on with all rows once there is room."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import wjoin
from tests.faults.child import script
from tests.faults.killing import assert_results, commits, write_streams
from wjoin.grammar.errors import WJoinError

# Room for the first micro-batches.
FIRST = {"files": "300k", "spark": "450k"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, without much room."""
    place = tmp_path / "checkpoints"
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
    session.spark.read.parquet(str(tmp_path / "tracked")).write.parquet(str(tmp_path / "committed"))
    assert_results(tmp_path, [str(path) for path in (tmp_path / "committed").glob("*.parquet")])
