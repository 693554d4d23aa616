"""Write some seconds of both cameras into the shared folder, a file each: 100 rows a second, in any order."""

import argparse
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PER_SECOND = 100


def write(shared: Path, first: int, last: int) -> None:
    """Write a file for each camera and second, from the first second to the last."""
    for second in range(first, last + 1):
        for camera in ("camera1", "camera2"):
            chance = random.Random(f"{camera} {second}")
            rows = [
                {
                    "obj_id": chance.randrange(1_000),
                    "ts": BEGIN + timedelta(seconds=second, microseconds=chance.randrange(1_000_000)),
                }
                for _ in range(PER_SECOND)
            ]
            folder = shared / camera
            folder.mkdir(parents=True, exist_ok=True)
            # Spark leaves out names that begin with a dot: the file appears whole.
            unfinished = folder / f".{second:05}"
            parquet.write_table(pa.Table.from_pylist(rows), unfinished)
            unfinished.rename(folder / f"{second:05}.parquet")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    given = parser.parse_args()
    write(given.shared, given.first, given.last)
