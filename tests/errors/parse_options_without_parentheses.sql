CREATE SINK s USING parquet OPTIONS path 'out'
