-- Planes on the path EWR, JFK, LGA: at most 24 hours for the first hop and 48 for the second
CREATE OR REPLACE SINK path USING parquet OPTIONS (path '${results}/path');

INSERT INTO path
SELECT E.tailnum, E.departed AS left_ewr, J.departed AS left_jfk, L.departed AS left_lga
FROM ewr AS E, jfk AS J, lga AS L
PATH (E, J, L) WITHIN (24 HOURS, 48 HOURS)
WHERE E.tailnum = J.tailnum AND J.tailnum = L.tailnum;
