-- A band: values that are near each other, in place of equal ones.
-- Which readings of two thermometers in one room, at most 5 seconds apart, differ by no more than half a degree?
CREATE OR REPLACE TEMPORARY VIEW window_side AS SELECT * FROM VALUES
  ('hall', TIMESTAMP '2024-05-01 12:00:00', 19.5D),
  ('hall', TIMESTAMP '2024-05-01 12:00:10', 17.0D),
  ('office', TIMESTAMP '2024-05-01 12:00:01', 21.0D) AS rows(room, ts, degrees);
CREATE OR REPLACE TEMPORARY VIEW door_side AS SELECT * FROM VALUES
  ('hall', TIMESTAMP '2024-05-01 12:00:03', 20.0D),
  ('hall', TIMESTAMP '2024-05-01 12:00:12', 19.8D),
  ('office', TIMESTAMP '2024-05-01 12:00:04', 20.9D) AS rows(room, ts, degrees);

-- The rows of a room are kept in the order of their degrees, so that only near ones are compared.
SELECT /*+ ALGORITHM(ORDERED) */ A.room, A.degrees AS window_side, B.degrees AS door_side
FROM window_side AS A, door_side AS B
WINDOW (A, B) = 5 SECONDS
WHERE A.room = B.room AND abs(A.degrees - B.degrees) <= 0.5
ORDER BY A.room;
