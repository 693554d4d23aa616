"""What users do with Delta Lake: batches with an identity, MERGE, tables by name, a sink that is gone."""

from pathlib import Path

import pytest

from tests.delta.packages import delta_settings
from tests.programs import run_python

pytestmark = pytest.mark.timeout(600)


def test_statements_of_users(tmp_path: Path) -> None:
    journey = str(Path(__file__).with_name("journey.py"))
    settings = [f"{name}={value}" for name, value in delta_settings().items()]
    done = run_python(tmp_path, journey, str(tmp_path), *settings)
    assert done.returncode == 0, done.stderr[-3000:]
    *said, gone = done.stdout.splitlines()
    assert said == [
        "once 1 52 52",
        "once 1 52 52",
        "once 2 104 52",
        "merged 20 52",
        "merged 20 104",
        "named 52 52",
        "empty 0 0",
        "more 56 56",
    ]
    assert gone.startswith("gone WJ611 ")
