-- UNION of the two directions by row, so that a plane that left all airports in one minute counts once.
WITH there AS (
  SELECT e.number AS e, j.number AS j, l.number AS l
  FROM ewr AS e JOIN jfk AS j USING (tailnum) JOIN lga AS l USING (tailnum)
  WHERE j.minute BETWEEN e.minute AND e.minute + 24 * 60
    AND l.minute BETWEEN j.minute AND j.minute + 48 * 60
), back AS (
  SELECT e.number AS e, j.number AS j, l.number AS l
  FROM lga AS l JOIN jfk AS j USING (tailnum) JOIN ewr AS e USING (tailnum)
  WHERE j.minute BETWEEN l.minute AND l.minute + 48 * 60
    AND e.minute BETWEEN j.minute AND j.minute + 24 * 60
)
SELECT jfk.tailnum, ewr.departed AS left_ewr, jfk.departed AS left_jfk, lga.departed AS left_lga,
  least(ewr.departed, jfk.departed, lga.departed) AS path_began,
  greatest(ewr.departed, jfk.departed, lga.departed) AS path_ended
FROM (SELECT * FROM there UNION SELECT * FROM back) AS found
JOIN ewr ON ewr.number = found.e JOIN jfk ON jfk.number = found.j JOIN lga ON lga.number = found.l
