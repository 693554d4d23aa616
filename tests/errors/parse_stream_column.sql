CREATE STREAM camera1 (obj_id, ts TIMESTAMP) USING parquet
