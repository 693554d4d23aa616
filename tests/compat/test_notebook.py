"""Cells of a notebook whose Spark is a Connect server: queries show what they do there, too."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebook.kernels import Kernel, Output

pytestmark = [pytest.mark.timeout(900), pytest.mark.thorough, pytest.mark.usefixtures("only_server")]

SESSION = """
from pyspark.sql import SparkSession
import wjoin
builder = wjoin.configure(SparkSession.builder.remote("local[2]"))
spark = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false").getOrCreate()
%load_ext wjoin
"""

QUERY = """%%wjoin
CREATE STREAM one USING rate OPTIONS (rowsPerSecond 10) WATERMARK timestamp DELAY OF INTERVAL 1 SECOND;
CREATE STREAM two USING rate OPTIONS (rowsPerSecond 10) WATERMARK timestamp DELAY OF INTERVAL 1 SECOND;
CREATE SINK pairs USING noop;
INSERT INTO pairs SELECT A.value FROM one A, two B WINDOW = 5 SECONDS WHERE A.value = B.value
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with a session of Spark Connect."""
    started = Kernel(str(tmp_path), {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")})
    yield started
    started.run("spark.stop()")
    started.close()


def rows_in(output: Output) -> int:
    found = re.search(r"([\d,]+) rows in", output.texts()[0])
    return int(found[1].replace(",", "")) if found is not None else 0


def test_a_query_through_connect_has_live_numbers(kernel: Kernel) -> None:
    assert kernel.run(SESSION).status == "ok"
    running = kernel.begin(QUERY)
    shown = kernel.end(running)
    assert shown.status == "ok", shown.error
    kernel.until(lambda: rows_in(shown) > 0, "numbers")
    some = rows_in(shown)
    kernel.until(lambda: rows_in(shown) > some, "more numbers")
    kernel.until(lambda: re.search(r"[1-9]\d* results of the join", shown.texts()[0]), "results")
    assert shown.html().count("<svg") == 4
    stopped = kernel.run("%wjoin STOP QUERY pairs")
    assert stopped.status == "ok", stopped.error
    kernel.until(lambda: "stopped" in shown.texts()[0], "the end")
