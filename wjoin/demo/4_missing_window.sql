-- A window for EWR and JFK, one for JFK and LGA; wjoin completes the missing one for EWR and LGA
CREATE OR REPLACE SINK missing_window USING parquet OPTIONS (path '${results}/missing_window');

INSERT INTO missing_window
SELECT E.tailnum, E.departed AS left_ewr, J.departed AS left_jfk, L.departed AS left_lga
FROM ewr AS E, jfk AS J, lga AS L
WINDOW (E, J) = 24 HOURS AND WINDOW (J, L) = 48 HOURS
WHERE E.tailnum = J.tailnum AND J.tailnum = L.tailnum;
