CREATE STREAM s (ms BIGINT, ts AS) USING json OPTIONS (path 'data')
