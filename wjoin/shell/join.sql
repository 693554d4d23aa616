-- Objects that passed camera 2 within 5 seconds of camera 1, and camera 3 within 3 seconds of that.
CREATE OR REPLACE TEMPORARY VIEW camera1 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'), (2, TIMESTAMP '2024-05-01 12:00:02') AS rows(obj_id, ts);
CREATE OR REPLACE TEMPORARY VIEW camera2 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:04'), (2, TIMESTAMP '2024-05-01 12:00:09') AS rows(obj_id, ts);
CREATE OR REPLACE TEMPORARY VIEW camera3 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:06'), (2, TIMESTAMP '2024-05-01 12:00:10') AS rows(obj_id, ts);

SELECT A.obj_id, A.ts AS at_1, B.ts AS at_2, C.ts AS at_3
FROM camera1 AS A, camera2 AS B, camera3 AS C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 3 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id;
