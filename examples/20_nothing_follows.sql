-- What should have followed, and has not: paths with NOT.
--   wjoin run examples/20_nothing_follows.sql --once --checkpoint examples/out/checkpoints
-- It writes its input and output into data/ and out/ beside this file; remove both before you run it again.
INSERT OVERWRITE DIRECTORY 'data/opened' USING parquet
  SELECT door, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, minute) AS ts
  FROM VALUES ('A', 0), ('B', 1), ('C', 2), ('A', 90) AS opened(door, minute);
INSERT OVERWRITE DIRECTORY 'data/closed' USING parquet
  SELECT door, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, minute) AS ts
  FROM VALUES ('A', 3), ('C', 9), ('B', 91) AS closed(door, minute);
INSERT OVERWRITE DIRECTORY 'data/alarms' USING parquet
  SELECT door, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, minute) AS ts
  FROM VALUES ('C', 7), ('A', 92) AS alarms(door, minute);

CREATE OR REPLACE STREAM opened (door STRING, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/opened') WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE OR REPLACE STREAM closed (door STRING, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/closed') WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE OR REPLACE STREAM alarms (door STRING, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/alarms') WATERMARK ts DELAY OF INTERVAL 10 MINUTES;

CREATE OR REPLACE SINK left_open USING parquet OPTIONS (path 'out/left_open');
CREATE OR REPLACE SINK unnoticed USING parquet OPTIONS (path 'out/unnoticed');

-- A door that was not closed within five minutes, told when no row of these can come any more.
INSERT INTO left_open
SELECT O.door, O.ts FROM opened O, closed C PATH (O, NOT C) WITHIN (5 MINUTES) WHERE O.door = C.door;

-- A door that was open for some time, without an alarm meanwhile.
INSERT INTO unnoticed
SELECT O.door, O.ts, C.ts - O.ts AS open FROM opened O, alarms A, closed C
PATH (O, NOT A, C) WITHIN (1 HOUR)
WHERE O.door = C.door AND O.door = A.door;

SELECT * FROM parquet.`out/left_open` ORDER BY door;
SELECT * FROM parquet.`out/unnoticed` ORDER BY door;
