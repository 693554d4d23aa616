-- A query that runs behind the prompt, into a sink that drops its rows.
CREATE OR REPLACE STREAM requests USING rate OPTIONS (rowsPerSecond 10)
WATERMARK timestamp DELAY OF INTERVAL 1 SECOND;
CREATE OR REPLACE STREAM replies USING rate OPTIONS (rowsPerSecond 10)
WATERMARK timestamp DELAY OF INTERVAL 1 SECOND;
CREATE OR REPLACE SINK answered USING noop;

INSERT INTO answered
SELECT Q.value, Q.timestamp AS asked, R.timestamp AS replied
FROM requests AS Q, replies AS R
WINDOW (Q, R) = 5 SECONDS
WHERE Q.value = R.value;

SHOW QUERIES;
