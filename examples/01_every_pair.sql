-- Form 1: every pair of streams within 10 seconds.
-- Three cameras see objects; which object passed all three within 10 seconds?
CREATE OR REPLACE TEMPORARY VIEW camera1 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'),
  (2, TIMESTAMP '2024-05-01 12:00:02') AS rows(obj_id, ts);
CREATE OR REPLACE TEMPORARY VIEW camera2 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:04'),
  (2, TIMESTAMP '2024-05-01 12:00:12') AS rows(obj_id, ts);
CREATE OR REPLACE TEMPORARY VIEW camera3 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:10'),
  (2, TIMESTAMP '2024-05-01 12:00:13') AS rows(obj_id, ts);

-- Object 2 is left out: 11 seconds lie between camera1 and camera3.
SELECT A.obj_id, A.ts AS at_1, B.ts AS at_2, C.ts AS at_3
FROM camera1 AS A, camera2 AS B, camera3 AS C
WINDOW = 10 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id
ORDER BY A.obj_id;
