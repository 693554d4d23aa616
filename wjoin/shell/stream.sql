-- Two streams of ten rows a second, joined as they come.
CREATE OR REPLACE STREAM requests USING rate OPTIONS (rowsPerSecond 10)
WATERMARK timestamp DELAY OF INTERVAL 1 SECOND;
CREATE OR REPLACE STREAM replies USING rate OPTIONS (rowsPerSecond 10)
WATERMARK timestamp DELAY OF INTERVAL 1 SECOND;

SELECT Q.value, Q.timestamp AS asked, R.timestamp - Q.timestamp AS took
FROM requests AS Q, replies AS R
WINDOW (Q, R) = 5 SECONDS
WHERE Q.value = R.value;
