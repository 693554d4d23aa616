"""Delta Lake for the Spark that the tests run on."""

from tests.spark_packages import jars_for_spark

_PACKAGES = {
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
"""By minor version of Spark: Delta Lake compiled against it, which alone runs there."""


def delta_settings() -> dict[str, str]:
    """Return the settings of a Spark with Delta Lake; skip where there is none, or it cannot be fetched."""
    return {
        "spark.jars": jars_for_spark("Delta Lake", _PACKAGES),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A log is read by 50 tasks, else, for each state of each table: seconds in every micro-batch.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
