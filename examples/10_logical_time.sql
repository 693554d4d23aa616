-- Event time may be a whole number in a unit of your own. WATERMARK names the column in place.
CREATE OR REPLACE TEMPORARY VIEW reads AS SELECT * FROM VALUES ('x', 100), ('y', 110) AS rows(item, step);
CREATE OR REPLACE TEMPORARY VIEW writes AS SELECT * FROM VALUES ('x', 103), ('y', 116) AS rows(item, step);

SELECT R.item, R.step AS read_at, W.step AS written_at, MATCH_SPAN() AS steps
FROM reads WATERMARK step DELAY OF 0 AS R, writes WATERMARK step DELAY OF 0 AS W
DWINDOW (R, W) = 5
WHERE R.item = W.item
ORDER BY R.item;
