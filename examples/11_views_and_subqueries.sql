-- A window join is a relation: use it in a view, a WITH clause or a subquery, and join it to tables.
CREATE OR REPLACE TEMPORARY VIEW names AS SELECT * FROM VALUES (1, 'fox'), (2, 'hare') AS rows(obj_id, name);
CREATE OR REPLACE TEMPORARY VIEW camera1 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'),
  (2, TIMESTAMP '2024-05-01 12:00:02') AS rows(obj_id, ts);
CREATE OR REPLACE TEMPORARY VIEW camera2 AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:04'),
  (2, TIMESTAMP '2024-05-01 12:00:05'),
  (2, TIMESTAMP '2024-05-01 12:00:06') AS rows(obj_id, ts);

CREATE OR REPLACE VIEW seen_twice AS
SELECT A.obj_id, A.ts AS first, B.ts AS second
FROM camera1 AS A, camera2 AS B
WINDOW (A, B) = 5 SECONDS
WHERE A.obj_id = B.obj_id;

SELECT name, count(*) AS sightings
FROM seen_twice JOIN names USING (obj_id)
GROUP BY name
ORDER BY name;

WITH quick AS (
  SELECT A.obj_id FROM camera1 AS A, camera2 AS B WINDOW (A, B) = 3 SECONDS WHERE A.obj_id = B.obj_id
)
SELECT name FROM names WHERE obj_id IN (SELECT obj_id FROM quick);
