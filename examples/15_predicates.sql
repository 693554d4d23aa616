-- Predicates: rows that match by no equality, judged by functions in Python. SHOW PREDICATES lists them.
-- Which plates that two gates have read within ten minutes are the same car, though a character was misread?
CREATE OR REPLACE TEMPORARY VIEW gate1 AS SELECT * FROM VALUES
  ('KA-412-BX', TIMESTAMP '2024-05-01 12:00:00', 52.520, 13.405),
  ('ML-900-QQ', TIMESTAMP '2024-05-01 12:01:00', 52.520, 13.405),
  ('ZZ-111-ZZ', TIMESTAMP '2024-05-01 12:02:00', 52.520, 13.405) AS rows(plate, ts, lat, lon);
CREATE OR REPLACE TEMPORARY VIEW gate2 AS SELECT * FROM VALUES
  ('KA-4I2-BX', TIMESTAMP '2024-05-01 12:06:00', 52.531, 13.384),
  ('ML-900-QQ', TIMESTAMP '2024-05-01 12:08:00', 52.531, 13.384),
  ('ZZ-111-ZZ', TIMESTAMP '2024-05-01 12:30:00', 52.531, 13.384) AS rows(plate, ts, lat, lon);

SELECT A.plate AS first, B.plate AS second, round(haversine_km(A.lat, A.lon, B.lat, B.lon), 2) AS km
FROM gate1 AS A, gate2 AS B
DWINDOW (A, B) = 10 MINUTES
WHERE edit_distance(A.plate, B.plate) <= 1
ORDER BY first;
