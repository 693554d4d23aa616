SELECT tailnum, e.departed AS left_ewr, j.departed AS left_jfk, l.departed AS left_lga
FROM ewr AS e JOIN jfk AS j USING (tailnum) JOIN lga AS l USING (tailnum)
WHERE j.minute BETWEEN e.minute AND e.minute + 24 * 60
  AND l.minute BETWEEN j.minute AND j.minute + 48 * 60
