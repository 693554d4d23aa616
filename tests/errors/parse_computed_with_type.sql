CREATE STREAM s (ms BIGINT, ts TIMESTAMP AS timestamp_millis(ms)) USING json OPTIONS (path 'data')
