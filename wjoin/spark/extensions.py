"""By what Spark is extended: classes of java/ that a setting names."""

COLUMNS, STATEMENTS = "wjoin.columns.Extension", "wjoin.sql.Extensions"
"""Values of ``spark.sql.extensions``: with both, rows go to Python as columns; the second adds W-join SQL."""

EXTENSIONS = "spark.sql.extensions"
"""The setting that names classes with which Spark is extended, with commas."""
