"""Tables of Iceberg as tables, streams and sinks; one that changes otherwise than by new rows."""

from pathlib import Path

import pytest

from tests.iceberg.packages import iceberg_settings
from tests.programs import run_python

pytestmark = [pytest.mark.sparks, pytest.mark.long]

EXPECTED = [
    ("from tables | 52 52 | ", "nothing"),
    ("merged | 52 52 | ", "nothing"),
    ("merged | 52 52 | ", "nothing"),
    ("begun | 52 52 | ", "nothing"),
    ("gone on | 112 112 | ", "nothing"),
    ("repeated | 112 112 | ", "nothing"),
    ("nothing new | 112 112 | ", "nothing"),
    ("in place | 112 112 | ", "nothing"),
    ("updated | 112 112 | ", "set streaming-skip-overwrite-snapshots=true"),
    ("skipped | 172 172 | ", "nothing"),
    ("wider | 232 232 | ", "nothing"),
    ("replaced | 232 232 | ", "the snapshot was expired or removed"),
]


@pytest.mark.timeout(600)
def test_tables_of_iceberg_are_tables_streams_and_sinks(tmp_path: Path) -> None:
    journey = str(Path(__file__).with_name("journey.py"))
    settings = [f"{name}={value}" for name, value in iceberg_settings(tmp_path / "lake").items()]
    done = run_python(tmp_path, journey, str(tmp_path), *settings)
    assert done.returncode == 0, done.stderr[-3000:]
    said = done.stdout.splitlines()
    assert len(said) == len(EXPECTED), said
    for line, (begin, part) in zip(said, EXPECTED, strict=True):
        assert line.startswith(begin), line
        assert part in line, line
