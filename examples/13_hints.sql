-- Hints choose how a statement runs; its rows are the same with each choice.
CREATE OR REPLACE TEMPORARY VIEW gate_a AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'),
  (2, TIMESTAMP '2024-05-01 12:00:40') AS rows(badge, ts);
CREATE OR REPLACE TEMPORARY VIEW gate_b AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:20'),
  (2, TIMESTAMP '2024-05-01 12:00:20') AS rows(badge, ts);
CREATE OR REPLACE TEMPORARY VIEW gate_c AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:30'),
  (2, TIMESTAMP '2024-05-01 12:00:10') AS rows(badge, ts);

-- A pass for each direction of the path; in each, the rows inside the window come before the key.
SELECT /*+ PASSES(UNION), ALGORITHM(MW) */ A.badge, A.ts AS at_a, C.ts AS at_c
FROM gate_a AS A, gate_b AS B, gate_c AS C
PATH (A, B, C) WITHIN (30 SECONDS, 15 SECONDS) BIDIRECTIONAL
WHERE A.badge = B.badge AND B.badge = C.badge
ORDER BY A.badge;

-- What statements get that have no such hint.
SET wjoin.bounds = lca;
SELECT A.badge, A.ts AS at_a, C.ts AS at_c
FROM gate_a AS A, gate_b AS B, gate_c AS C
WINDOW (A, B) = 30 SECONDS AND WINDOW (B, C) = 15 SECONDS
WHERE A.badge = B.badge AND B.badge = C.badge
ORDER BY A.badge;
