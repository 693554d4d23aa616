"""The executor's Spark side: the only importers of pyspark below the public face."""
