SELECT tailnum, e.departed AS left_ewr, j.departed AS left_jfk, l.departed AS left_lga
FROM ewr AS e JOIN jfk AS j USING (tailnum) JOIN lga AS l USING (tailnum)
WHERE abs(j.minute - e.minute) <= 24 * 60
  AND abs(l.minute - j.minute) <= 48 * 60
