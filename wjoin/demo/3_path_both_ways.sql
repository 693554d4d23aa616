-- The same path in both directions
CREATE OR REPLACE SINK path_both_ways USING parquet OPTIONS (path '${results}/path_both_ways');

INSERT INTO path_both_ways
SELECT J.tailnum, E.departed AS left_ewr, J.departed AS left_jfk, L.departed AS left_lga,
  MATCH_START() AS path_began, MATCH_TIME() AS path_ended
FROM ewr AS E, jfk AS J, lga AS L
PATH (E, J, L) WITHIN (24 HOURS, 48 HOURS) BIDIRECTIONAL
WHERE E.tailnum = J.tailnum AND J.tailnum = L.tailnum;
