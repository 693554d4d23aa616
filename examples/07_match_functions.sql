-- When a match began and ended, and counts of matches by minute.
CREATE OR REPLACE TEMPORARY VIEW requests AS
  SELECT id, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, 20 * id) AS ts FROM range(6);
CREATE OR REPLACE TEMPORARY VIEW replies AS
  SELECT id, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, 21 * id) AS ts FROM range(6);

SELECT Q.id, MATCH_START() AS began, MATCH_TIME() AS ended, MATCH_SPAN() AS took
FROM requests AS Q, replies AS R
DWINDOW (Q, R) = 3 SECONDS
WHERE Q.id = R.id
ORDER BY Q.id;

SELECT window(MATCH_TIME(), '1 minute').start AS minute, count(*) AS replies
FROM requests AS Q, replies AS R
DWINDOW (Q, R) = 3 SECONDS
WHERE Q.id = R.id
GROUP BY window(MATCH_TIME(), '1 minute')
ORDER BY minute;
