-- Approximate joins: rows live in regions, and visit others only where they probably find something.
--   wjoin run examples/21_approximate.sql --once --checkpoint examples/out/checkpoints
-- It writes its input and output into data/ and out/ beside this file; remove both before you run it again.

-- Hosts 0 to 9 are known in region 0, hosts 10 to 19 in region 1, and so on.
INSERT OVERWRITE DIRECTORY 'data/requests' USING parquet
  SELECT id % 40 AS host, CAST(id % 40 DIV 10 AS INT) AS region,
    TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, id / 10) AS ts FROM range(400);
INSERT OVERWRITE DIRECTORY 'data/alarms' USING parquet
  SELECT 5 * id AS host, CAST(5 * id DIV 10 AS INT) AS region,
    TIMESTAMP '2024-05-01 12:00:20' AS ts FROM range(8);

CREATE OR REPLACE STREAM requests (host BIGINT, region INT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/requests') WATERMARK ts DELAY OF INTERVAL 1 MINUTE HOME BY region;
CREATE OR REPLACE STREAM alarms (host BIGINT, region INT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/alarms') WATERMARK ts DELAY OF INTERVAL 1 MINUTE HOME BY region;

CREATE OR REPLACE SINK suspicious USING parquet OPTIONS (path 'out/suspicious');

-- A tenth of the results may be lost. Here each host is in one region, so none is.
INSERT INTO suspicious
SELECT /*+ APPROXIMATE(error = 0.1), PLAN(DIGEST, 4) */ R.host, R.ts
FROM requests AS R, alarms AS A WINDOW (R, A) = 5 SECONDS
WHERE R.host = A.host;

SELECT host, count(*) AS requests FROM parquet.`out/suspicious` GROUP BY host ORDER BY host;
