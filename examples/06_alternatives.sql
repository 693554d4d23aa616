-- OR: a combination of rows that satisfies several alternatives appears once.
CREATE OR REPLACE TEMPORARY VIEW doors AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'),
  (2, TIMESTAMP '2024-05-01 12:00:00'),
  (3, TIMESTAMP '2024-05-01 12:00:00') AS rows(badge, ts);
CREATE OR REPLACE TEMPORARY VIEW lifts AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'),
  (2, TIMESTAMP '2024-05-01 12:00:40'),
  (3, TIMESTAMP '2024-05-01 11:59:20') AS rows(badge, ts);

-- The door first by up to a minute, or the lift first by up to 30 seconds.
SELECT D.badge, L.ts AS lift
FROM doors AS D, lifts AS L
(DWINDOW (D, L) = 1 MINUTE OR DWINDOW (L, D) = 30 SECONDS)
WHERE D.badge = L.badge
ORDER BY D.badge;
