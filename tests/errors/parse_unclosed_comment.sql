CREATE STREAM s USING parquet /* to do
