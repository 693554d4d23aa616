-- Planes that left all three airports within 24 hours
CREATE OR REPLACE SINK planes USING parquet OPTIONS (path '${results}/planes');

INSERT INTO planes
SELECT E.tailnum, E.departed AS left_ewr, J.departed AS left_jfk, L.departed AS left_lga
FROM ewr AS E, jfk AS J, lga AS L
WINDOW = 24 HOURS
WHERE E.tailnum = J.tailnum AND J.tailnum = L.tailnum;
