-- Form 3: pairs without a window get the one that the others imply.
CREATE OR REPLACE TEMPORARY VIEW a AS SELECT 1 AS k, TIMESTAMP '2024-05-01 12:00:00' AS ts;
CREATE OR REPLACE TEMPORARY VIEW b AS SELECT 1 AS k, TIMESTAMP '2024-05-01 12:00:05' AS ts;
CREATE OR REPLACE TEMPORARY VIEW c AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:08'),
  (1, TIMESTAMP '2024-05-01 12:00:09') AS rows(k, ts);

-- From (a, b) and (b, c), a and c are at most 8 seconds apart.
SELECT a.ts AS at_a, b.ts AS at_b, c.ts AS at_c
FROM a, b, c
WINDOW (a, b) = 5 SECONDS AND WINDOW (b, c) = 3 SECONDS
WHERE a.k = b.k AND b.k = c.k
ORDER BY c.ts;
