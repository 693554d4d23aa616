-- Streams: a query that runs on, micro-batch by micro-batch.
--   wjoin run examples/12_streams.sql --once --checkpoint examples/out/checkpoints
-- It writes its input and output into data/ and out/ beside this file; remove both before you run it again.

-- 1. Some input: Parquet files, written by plain Spark SQL.
INSERT OVERWRITE DIRECTORY 'data/camera1' USING parquet
  SELECT id AS obj_id, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, id) AS ts FROM range(100);
INSERT OVERWRITE DIRECTORY 'data/camera2' USING parquet
  SELECT id AS obj_id, TIMESTAMP '2024-05-01 12:00:03' + make_dt_interval(0, 0, 0, id) AS ts FROM range(100);
INSERT OVERWRITE DIRECTORY 'data/camera3' USING parquet
  SELECT id * 10 AS obj_id, TIMESTAMP '2024-05-01 12:00:05' + make_dt_interval(0, 0, 0, id * 10) AS ts FROM range(10);

-- 2. Streams over the files. A row may come up to 2 minutes after rows with later times.
CREATE OR REPLACE STREAM camera1 (obj_id BIGINT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/camera1', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 2 MINUTES;
CREATE OR REPLACE STREAM camera2 (obj_id BIGINT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/camera2', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 2 MINUTES;
-- The same clause in Flink's words.
CREATE OR REPLACE STREAM camera3 (obj_id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 2 MINUTES)
USING parquet OPTIONS (path 'data/camera3', maxFilesPerTrigger '1');

-- 3. A sink, and the query into it.
CREATE OR REPLACE SINK tracked USING parquet OPTIONS (path 'out/tracked');

INSERT INTO tracked
SELECT A.obj_id, A.ts AS at_1, B.ts AS at_2, C.ts AS at_3
FROM camera1 AS A, camera2 AS B, camera3 AS C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 2 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id AND C.obj_id >= 50;

-- 4. What has been found so far.
SELECT * FROM parquet.`out/tracked` ORDER BY obj_id;
