"""Iceberg for the Spark that the tests run on."""

import subprocess
from pathlib import Path

import pyspark
import pytest

from tests.packages import ROOT

_PACKAGES = {
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""By minor version of Spark: Iceberg's jar for it."""


def iceberg_settings(warehouse: Path) -> dict[str, str]:
    """Return the settings of a Spark with a catalog ``lake`` of tables below a folder; else skip."""
    minor = ".".join(pyspark.__version__.split(".")[:2])
    if minor not in _PACKAGES:
        pytest.skip(f"no Iceberg is published for Spark {minor}: `make matrix` tests it on others")
    command = [str(ROOT / "scripts" / "fetch_jars.sh"), _PACKAGES[minor]]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"{_PACKAGES[minor]} cannot be fetched: {fetched.stderr[-500:]}")
    jars = sorted(Path(fetched.stdout.strip()).glob("*.jar"))
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
    }
