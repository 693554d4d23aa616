"""Under Spark Connect there is no JVM to reach into."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.connect.group import GroupedData

# Time to wait for the other server, too.
pytestmark = [
    pytest.mark.core,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("only_server"),
]


def test_batch_and_stream_under_spark_connect(tmp_path: Path) -> None:
    client = Path(__file__).with_name("connect_client.py")
    done = subprocess.run(
        [sys.executable, str(client), str(tmp_path)], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = done.stdout.splitlines()
    if not hasattr(GroupedData, "transformWithStateInPandas"):
        # Nor does its server tell what EXPLAIN ANALYZE observes.
        assert said[-2:] == ["WJ606 nowhere", "100 100"]
        return
    assert said[-11:] == [
        "100 100 100 100 100 {'A': 100, 'B': 100}",
        "2 streams measured",
        "disorder 1.0 seconds",
        "100 named",
        "WJ216 nope(ts)",
        "WJ216 1 +",
        "WJ606 window(A.at, '1 second')",
        "200 200 200 shared",
        "JSON 7",
        "CSV 7",
        "shown 100 100 1 plan",
    ]
