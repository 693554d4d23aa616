-- The same scene seen by three cameras: pictures that are alike, within seconds, and no key that says so.
--   python examples/pictures/frames.py
--   wjoin run examples/pictures/cameras.sql --once --checkpoint examples/pictures/out/checkpoints
-- The first command writes the frames into data/ beside this file, the second one what it finds into out/.

-- 1. A stream for each camera. Frames come up to 5 seconds after frames with later times. A frame is the red,
--    green and blue bytes of 96 x 96 pixels; contrast is how much its pixels differ among themselves.
CREATE OR REPLACE STREAM camera1 (id BIGINT, ts TIMESTAMP, brightness DOUBLE, contrast DOUBLE, frame BINARY)
USING parquet OPTIONS (path 'data/camera1', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 5 SECONDS;
CREATE OR REPLACE STREAM camera2 (id BIGINT, ts TIMESTAMP, brightness DOUBLE, contrast DOUBLE, frame BINARY)
USING parquet OPTIONS (path 'data/camera2', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 5 SECONDS;
CREATE OR REPLACE STREAM camera3 (id BIGINT, ts TIMESTAMP, brightness DOUBLE, contrast DOUBLE, frame BINARY)
USING parquet OPTIONS (path 'data/camera3', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 5 SECONDS;

-- 2. What the planner cannot know before the first run: frames a second. A new frame then meets the camera first
--    with which it has a condition, and not all pairs of the first and the third one.
ALTER STREAM camera1 SET STATISTICS (rate = 2);
ALTER STREAM camera2 SET STATISTICS (rate = 2);
ALTER STREAM camera3 SET STATISTICS (rate = 2);

CREATE OR REPLACE SINK same_scene USING parquet OPTIONS (path 'out/same_scene');

-- 3. Every plain wall is like every other one: frames without contrast are left out.
INSERT INTO same_scene
SELECT A.id AS first, B.id AS second, C.id AS third
FROM camera1 AS A, camera2 AS B, camera3 AS C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 5 SECONDS
WHERE A.contrast > 25 AND B.contrast > 25 AND C.contrast > 25
  AND rgb_similarity(A.frame, B.frame) > 0.88 AND rgb_similarity(B.frame, C.frame) > 0.88;
