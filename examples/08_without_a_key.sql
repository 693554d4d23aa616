-- A join without an equality (theta join): temperatures that jump within five minutes.
CREATE OR REPLACE TEMPORARY VIEW inside AS SELECT * FROM VALUES
  (TIMESTAMP '2024-05-01 12:00:00', 20.5),
  (TIMESTAMP '2024-05-01 12:10:00', 21.0) AS rows(ts, celsius);
CREATE OR REPLACE TEMPORARY VIEW outside AS SELECT * FROM VALUES
  (TIMESTAMP '2024-05-01 12:04:00', 9.0),
  (TIMESTAMP '2024-05-01 12:12:00', 18.5) AS rows(ts, celsius);

SELECT I.ts, I.celsius AS inside, O.celsius AS outside
FROM inside AS I, outside AS O
WINDOW (I, O) = 5 MINUTES
WHERE abs(I.celsius - O.celsius) > 10
ORDER BY I.ts;
