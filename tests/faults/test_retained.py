"""Results kept for some seconds are read while another process writes, lets old ones go, and is killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.faults.retaining import SINK, STATEMENTS
from wjoin.results.commit_log import CommitLog
from wjoin.spark.hadoop_files import Files

ROWS, KILLS = 6, 2
CHILD = Path(__file__).with_name("retaining.py")


@dataclass
class Writing:
    """A process that writes into the sinks below a folder, and what it is given to write."""

    root: Path
    kind: str
    batches: int = 0
    child: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        (self.root / "numbers").mkdir()
        self.start()

    def start(self) -> None:
        with (self.root / "child.log").open("ab") as log:
            command = [sys.executable, str(CHILD), str(self.root), self.kind]
            environment = {**os.environ, "PYTHONPATH": str(CHILD.parents[2]), "WJOIN_PREPARE": "off"}
            self.child = subprocess.Popen(
                command, start_new_session=True, stdout=log, stderr=log, env=environment
            )

    def arrive(self) -> None:
        """Write a file, which is a micro-batch."""
        rows = [
            {"id": ROWS * self.batches + each, "batch": self.batches, "ts": 1_700_000_000_000_000}
            for each in range(ROWS)
        ]
        schema = pa.schema([("id", pa.int64()), ("batch", pa.int32()), ("ts", pa.timestamp("us", "UTC"))])
        hidden = self.root / ".hidden"
        pq.write_table(pa.Table.from_pylist(rows, schema), hidden)
        hidden.rename(self.root / "numbers" / f"{self.batches:05}.parquet")
        self.batches += 1

    def committed(self) -> set[int]:
        """Return the numbers of the micro-batches that the sink kept has."""
        log = self.root / "kept" / "_spark_metadata"
        names = [path.name.split(".")[0] for path in log.glob("*")]
        return {int(name) for name in names if name.isdigit()}

    def kill(self) -> None:
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()

    def printed(self) -> str:
        return (self.root / "child.log").read_text()[-3000:]


def read(session: wjoin.Session, asked: str = "") -> Counter[int]:
    """Return the rows by the file that they come from."""
    query = f"SELECT batch, count(*), count(DISTINCT id) FROM kept {asked} GROUP BY batch"
    rows = session.sql(query).collect()
    assert [row for row in rows if row[1] != row[2]] == [], "rows are doubled"
    return Counter({row[0]: row[1] for row in rows})


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", STATEMENTS)
def test_whole_micro_batches_are_read_while_the_writer_is_killed(
    session: wjoin.Session, tmp_path: Path, kind: str
) -> None:
    chance = random.Random(time.time_ns())
    writing = Writing(tmp_path, kind)
    session.sql(SINK.format(root=tmp_path))
    log = CommitLog(Files.of(session.spark), str(tmp_path / "kept"))
    reads = kills = 0
    files = set[Path]()
    began = time.monotonic()
    while kills < KILLS or all(path.exists() for path in files):
        before = writing.committed()
        writing.arrive()
        while not writing.committed() - before:
            assert time.monotonic() < began + 600 and writing.child.poll() is None, writing.printed()
            time.sleep(0.02)
        files |= set((tmp_path / "kept").glob("*.parquet"))
        results = log.results()
        assert results is not None
        for asked in ("", f"AS OF (timestamp_millis({chance.choice(results.retained).at})) AS x"):
            try:
                found = read(session, asked)
            except wjoin.WJoinError as error:
                # What was the oldest may have gone meanwhile.
                assert error.code == "WJ622", error
                continue
            assert set(found.values()) <= {ROWS}, (asked, found)
            reads += 1
        if kills < KILLS and chance.random() < 0.2:
            time.sleep(chance.uniform(0, 0.5))
            writing.kill()
            kills += 1
            writing.start()
    (tmp_path / "end").touch()
    assert writing.child.wait(timeout=120) == 0, writing.printed()
    results = log.results()
    assert results is not None and all(each.whole for each in results.commits)
    numbers = [each.number for each in results.commits]
    assert numbers == [*range(numbers[0], numbers[-1] + 1)]
    rows = session.read.parquet(str(tmp_path / "kept")).select("batch").collect()
    spark = Counter(row[0] for row in rows)
    assert read(session) <= spark and set(spark.values()) == {ROWS}
    if kind == "set":
        other = session.read.schema("id BIGINT, batch INT").json(str(tmp_path / "other")).collect()
        assert sorted(row[0] for row in other) == [*range(ROWS * writing.batches)]
    gone = sum(not path.exists() for path in files)
    print(f"{kills} kills, {reads} reads, {gone} of {len(files)} files removed")
