-- A path: one stream after the other, or, with BIDIRECTIONAL, back the same way.
CREATE OR REPLACE TEMPORARY VIEW gate_a AS SELECT * FROM VALUES
  ('P1', TIMESTAMP '2024-05-01 12:00:00'),
  ('P2', TIMESTAMP '2024-05-01 12:00:45') AS rows(plate, ts);
CREATE OR REPLACE TEMPORARY VIEW gate_b AS SELECT * FROM VALUES
  ('P1', TIMESTAMP '2024-05-01 12:00:30'),
  ('P2', TIMESTAMP '2024-05-01 12:00:20') AS rows(plate, ts);
CREATE OR REPLACE TEMPORARY VIEW gate_c AS SELECT * FROM VALUES
  ('P1', TIMESTAMP '2024-05-01 12:01:20'),
  ('P2', TIMESTAMP '2024-05-01 12:00:00') AS rows(plate, ts);

SELECT A.plate AS there
FROM gate_a AS A, gate_b AS B, gate_c AS C
PATH (A, B, C) WITHIN (30 SECONDS, 1 MINUTE)
WHERE A.plate = B.plate AND B.plate = C.plate
ORDER BY A.plate;

SELECT A.plate AS both_ways, CASE WHEN A.ts <= C.ts THEN 'A to C' ELSE 'C to A' END AS direction
FROM gate_a AS A, gate_b AS B, gate_c AS C
PATH (A, B, C) WITHIN (30 SECONDS, 1 MINUTE) BIDIRECTIONAL
WHERE A.plate = B.plate AND B.plate = C.plate
ORDER BY A.plate;
