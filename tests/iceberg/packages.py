"""Iceberg for the Spark that the tests run on."""

from pathlib import Path

from tests.spark_packages import jars_for_spark

_PACKAGES = {
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""By minor version of Spark: Iceberg's jar for it."""


def iceberg_settings(warehouse: Path) -> dict[str, str]:
    """Return the settings of a Spark with a catalog ``lake`` of tables below a folder; else skip."""
    return {
        "spark.jars": jars_for_spark("Iceberg", _PACKAGES),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
    }
