-- Objects that the second camera sees within 5 seconds of the first. :shared is a folder that all machines reach.
CREATE OR REPLACE STREAM camera1 (obj_id BIGINT, ts TIMESTAMP)
USING parquet OPTIONS (path :shared || '/camera1')
WATERMARK ts DELAY OF INTERVAL 2 SECONDS;

CREATE OR REPLACE STREAM camera2 (obj_id BIGINT, ts TIMESTAMP)
USING parquet OPTIONS (path :shared || '/camera2')
WATERMARK ts DELAY OF INTERVAL 2 SECONDS;

CREATE OR REPLACE SINK tracked USING parquet OPTIONS (path :shared || '/tracked');

-- State as files beside the checkpoint: an executor that takes over from another one finds it there.
SET wjoin.state = files;

INSERT INTO tracked
SELECT A.obj_id, A.ts AS at_1, B.ts AS at_2
FROM camera1 AS A, camera2 AS B
DWINDOW (A, B) = 5 SECONDS
WHERE A.obj_id = B.obj_id;
