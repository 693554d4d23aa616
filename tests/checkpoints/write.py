"""Writes the stored checkpoint of a state format, by hand and once: ``python -m tests.checkpoints.write 8``.

It makes a folder of that name beside this file:

- ``statement.sql``: the script that ran, ``{folder}`` in place of the folder that all its paths begin with;
- ``before/``, ``after/``: the rows of its streams, those that the checkpoint has taken in and those to come;
- ``checkpoint.tar.gz``: the checkpoint and the sink's folder. Files that Spark wrote as text have
  ``FOLDER`` in place of that folder, as Spark lists sources and results by absolute path.

A stored checkpoint is never written anew: it stands for those that users have.
"""

import argparse
import datetime
import json
import os
import random
import shutil
import tarfile
import tempfile
from pathlib import Path

import wjoin
from wjoin.executor.state.identity import STATE_FORMAT

HERE = Path(__file__).parent

FOLDER = "/folder-of-the-checkpoint"
"""What stands in stored files for the folder in which a checkpoint was written."""

SETTINGS = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}

_BEFORE, _AFTER = 6, 3
"""Files of each stream, each a micro-batch: enough that slices have been merged, rewritten and dropped."""

_ROWS = 30
_KEYS = 24
_STEP_SECONDS = 6
_MADE = 1_700_000_000

_SCRIPT = """
CREATE STREAM orders (id BIGINT, shop STRING, price BIGINT, ts TIMESTAMP)
USING json OPTIONS (path '{folder}/orders', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 3 SECONDS;
CREATE STREAM visits (id BIGINT, shop STRING, badge BIGINT, ts TIMESTAMP)
USING json OPTIONS (path '{folder}/visits', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 3 SECONDS;
CREATE STREAM doors (id BIGINT, badge BIGINT, price BIGINT, ts TIMESTAMP)
USING json OPTIONS (path '{folder}/doors', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 3 SECONDS;
CREATE SINK found USING json OPTIONS (path '{folder}/found');
INSERT INTO found
SELECT O.id AS orders, V.id AS visits, D.id AS doors
FROM orders O, visits V, doors D
WINDOW (O, V) = 10 SECONDS AND WINDOW (V, D) = 8 SECONDS
WHERE O.shop = V.shop AND V.badge = D.badge AND O.price < D.price;
"""
"""Three streams, two stages: a key of strings, which is hashed, one of numbers, and a comparison."""

_COLUMNS = {"orders": ("shop", "price"), "visits": ("shop", "badge"), "doors": ("badge", "price")}


def write(folder: Path) -> None:
    """Write the stored checkpoint of this version's state format into a new folder."""
    folder.mkdir()
    (folder / "statement.sql").write_text(_SCRIPT.lstrip())
    _write_rows(folder)
    with tempfile.TemporaryDirectory(prefix="wjoin-checkpoint-") as name:
        root = Path(name)
        add_rows(folder / "before", root)
        session = wjoin.connect(**SETTINGS)
        session.run_script(_SCRIPT.format(folder=root), checkpoint=str(root / "checkpoints"))
        session.spark.stop()
        _pack(root, folder / "checkpoint.tar.gz")


def add_rows(stored: Path, root: Path) -> None:
    """Copy rows of the streams into the folders that the statement reads, older files first."""
    for path in sorted(stored.glob("*/*.json")):
        copy = root / path.relative_to(stored)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)
        made = _MADE + int(path.stem)
        os.utime(copy, (made, made))


def unpack(folder: Path, root: Path) -> None:
    """Lay a stored checkpoint into an empty folder, as if it had been written there."""
    with tarfile.open(folder / "checkpoint.tar.gz") as packed:
        packed.extractall(root, filter="data")
    _rename(root, FOLDER, str(root))


def _pack(root: Path, to: Path) -> None:
    for path in root.rglob(".*.crc"):
        # Of files that are about to change, and Spark reads the others without, too.
        path.unlink()
    _rename(root, str(root), FOLDER)
    with tarfile.open(to, "w:gz") as packed:
        for name in ("checkpoints", "found"):
            packed.add(root / name, name)


def _rename(root: Path, old: str, new: str) -> None:
    """Replace a folder in all texts below ``root``: what is not UTF-8 holds no paths that are read."""
    for path in root.rglob("*"):
        if path.is_file() and old.encode() in (data := path.read_bytes()):
            path.write_text(data.decode().replace(old, new))


def _write_rows(folder: Path) -> None:
    chance = random.Random(7)
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    for name, columns in _COLUMNS.items():
        number = 0
        for file in range(_BEFORE + _AFTER):
            lines = []
            for _ in range(_ROWS):
                number += 1
                values = {"shop": f"shop-{chance.randrange(_KEYS)}", "badge": chance.randrange(_KEYS)}
                values["price"] = chance.randrange(100)
                seconds = file * _STEP_SECONDS + chance.uniform(0, _STEP_SECONDS + 2.5)
                time = start + datetime.timedelta(seconds=seconds)
                own = {column: values[column] for column in columns}
                lines.append(json.dumps({"id": number, **own, "ts": time.isoformat(timespec="milliseconds")}))
            path = folder / ("before" if file < _BEFORE else "after") / name / f"{file}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Write the checkpoint of the format that is named, where this version writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", type=int)
    wanted = parser.parse_args().format
    if wanted != STATE_FORMAT:
        parser.error(f"this version writes state format {STATE_FORMAT}")
    write(HERE / str(wanted))


if __name__ == "__main__":
    main()
