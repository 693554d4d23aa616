CREATE SINK s (a INT) USING parquet
