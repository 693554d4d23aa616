"""Tables of Delta Lake that change below a query: it goes on, or says what has happened and what to do."""

from pathlib import Path

import pytest

from tests.delta.packages import delta_settings
from tests.programs import run_python

pytestmark = [pytest.mark.sparks, pytest.mark.long, pytest.mark.timeout(600)]

BEFORE, AFTER = "52 52", "112 112"
"""How many rows a sink has, and how many different ones, before the tables have more and after."""

EXPECTED = {
    "updated": (BEFORE, "WJ704", "[DELTA_SOURCE_TABLE_IGNORE_CHANGES]", "skipChangeCommits 'true'"),
    "updated again": (AFTER,),
    # A stream keeps the columns that it was declared with.
    "wider": (BEFORE, "WJ704", "CREATE OR REPLACE STREAM"),
    "wider again": (AFTER,),
    "replaced": (BEFORE, "WJ704", "[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE]", "a new checkpoint"),
    "forgotten": (BEFORE, "WJ704", "delta.logRetentionDuration"),
    "running": (BEFORE, "WJ704", "[DELTA_SOURCE_TABLE_IGNORE_CHANGES]", "skipChangeCommits 'true'"),
}


def test_a_table_that_changes_is_never_lost_silently(tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("changes.py"))
    settings = [f"{name}={value}" for name, value in delta_settings().items()]
    done = run_python(tmp_path, program, str(tmp_path), *settings)
    assert done.returncode == 0, done.stderr[-3000:]
    said = dict(line.split(" | ", 1) for line in done.stdout.splitlines())
    assert list(said) == list(EXPECTED)
    for name, parts in EXPECTED.items():
        assert said[name].startswith(parts[0]), said[name]
        assert [part for part in parts[1:] if part not in said[name]] == [], said[name]
