-- Two equality classes: wjoin joins in two stages. B belongs to both.
CREATE OR REPLACE TEMPORARY VIEW calls AS SELECT * FROM VALUES
  (1, TIMESTAMP '2024-05-01 12:00:00'),
  (2, TIMESTAMP '2024-05-01 12:00:01') AS rows(trace, ts);
CREATE OR REPLACE TEMPORARY VIEW jobs AS SELECT * FROM VALUES
  (1, 'host-a', TIMESTAMP '2024-05-01 12:00:02'),
  (2, 'host-b', TIMESTAMP '2024-05-01 12:00:03') AS rows(trace, host, ts);
CREATE OR REPLACE TEMPORARY VIEW alarms AS SELECT * FROM VALUES
  ('host-b', TIMESTAMP '2024-05-01 12:00:05'),
  ('host-c', TIMESTAMP '2024-05-01 12:00:05') AS rows(host, ts);

SELECT A.trace, B.host, C.ts AS alarm
FROM calls AS A JOIN jobs AS B ON A.trace = B.trace JOIN alarms AS C ON B.host = C.host
WINDOW = 5 SECONDS
ORDER BY A.trace;
