"""What users do with Delta Lake: batches with an identity, MERGE, tables by name, a sink that is gone."""

from pathlib import Path

import pytest

from tests.delta.packages import delta_settings
from tests.programs import run_python

pytestmark = [pytest.mark.sparks, pytest.mark.core, pytest.mark.long, pytest.mark.timeout(600)]


def test_statements_of_users(tmp_path: Path) -> None:
    journey = str(Path(__file__).with_name("journey.py"))
    settings = [f"{name}={value}" for name, value in delta_settings().items()]
    done = run_python(tmp_path, journey, str(tmp_path), *settings)
    assert done.returncode == 0, done.stderr[-3000:]
    said = done.stdout.splitlines()
    (gone,) = [line for line in said if line.startswith("gone ")]
    assert gone.startswith("gone WJ611 ")
    said.remove(gone)
    assert said == [
        "once 1 52 52",
        "once 1 52 52",
        "once 2 104 52",
        "named 52 52",
        "empty 0 0",
        "more 56 56",
        # Merged twice, and again with four rows more that have a partner each.
        "merged 112 112",
        "merged 112 112",
        "merged 116 116",
        "counted 44 116",
        "counted 44 116",
        "counted 44 232",
    ]
