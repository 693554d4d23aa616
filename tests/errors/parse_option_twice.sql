CREATE SINK s USING parquet OPTIONS (path 'a', PATH 'b')
