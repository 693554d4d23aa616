"""Delta Lake for the Spark that the tests run on."""

import subprocess
from pathlib import Path

import pyspark
import pytest

from tests.packages import ROOT

_PACKAGES = {
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
"""By minor version of Spark: Delta Lake compiled against it, which alone runs there."""


def delta_settings() -> dict[str, str]:
    """Return the settings of a Spark with Delta Lake; skip where there is none, or it cannot be fetched."""
    minor = ".".join(pyspark.__version__.split(".")[:2])
    if minor not in _PACKAGES:
        pytest.skip(f"no Delta Lake is published for Spark {minor}: `make matrix` tests it on others")
    command = [str(ROOT / "scripts" / "fetch_jars.sh"), _PACKAGES[minor]]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"{_PACKAGES[minor]} cannot be fetched: {fetched.stderr[-500:]}")
    jars = sorted(Path(fetched.stdout.strip()).glob("*.jar"))
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A log is read by 50 tasks, else, for each state of each table: seconds in every micro-batch.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
