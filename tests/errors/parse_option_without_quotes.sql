CREATE STREAM s USING parquet OPTIONS (path data)
