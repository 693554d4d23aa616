"""What is written of a query beside its results is for its user alone, whatever the umask says."""

import json
import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.tables import events
from tests.programs import run_python

PROGRAM = """
import json, os, pathlib
os.umask(0o022)
import wjoin
session = wjoin.connect(**{"wjoin.log": "logs/spark.log", "spark.master": "local[2]"})
for name in "ab":
    session.sql(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{name}')"
                " WATERMARK ts DELAY OF INTERVAL 1 SECOND")
session.run_script(
    "CREATE SINK out USING parquet OPTIONS (path 'out');"
    "INSERT INTO out SELECT a.k FROM a, b WINDOW = 5 SECONDS WHERE a.k = b.k",
    checkpoint="checkpoints",
)
folder = pathlib.Path(session.spark._jvm.java.lang.System.getProperty("java.io.tmpdir"))
print(json.dumps({"temporary": str(folder), "blocks": [str(each) for each in folder.glob("blockmgr-*")]}))
print(oct(folder.stat().st_mode)[-3:])
"""


def mode(file: Path) -> str:
    return oct(stat.S_IMODE(file.stat().st_mode))[2:]


@pytest.mark.long
@pytest.mark.spark
def test_checkpoints_logs_and_blocks_are_the_users_and_results_as_the_umask_says(tmp_path: Path):
    for name in "ab":
        (tmp_path / name).mkdir()
        table = events([(n, n * 1_000_000, n % 4) for n in range(20)], "k", time=pa.timestamp("us", "UTC"))
        pq.write_table(table, tmp_path / name / "rows.parquet")
    done = run_python(tmp_path, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr[-3000:]
    told, of_java = done.stdout.splitlines()[-2:]
    told = json.loads(told)
    assert of_java == "700"
    assert told["blocks"] and all(each.startswith(f"{told['temporary']}{os.sep}") for each in told["blocks"])
    assert not Path(told["temporary"]).exists(), "it goes with the process"
    assert mode(tmp_path / "checkpoints" / "out") == "700"
    assert mode(tmp_path / "logs" / "spark.log") == "600"
    assert mode(tmp_path / "out") == "755"
    results = list((tmp_path / "out").glob("*.parquet"))
    assert results and {mode(each) for each in results} == {"644"}
