-- The nearest row: trades with the last quote before each of them, by an ASOF JOIN of streams.
--   wjoin run examples/19_trades_and_quotes.sql --once --checkpoint examples/out/checkpoints
-- It writes its input and output into data/ and out/ beside this file; remove both before you run it again.
INSERT OVERWRITE DIRECTORY 'data/trades' USING parquet
  SELECT sym, CAST(price AS DECIMAL(3, 1)) AS price, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, second) AS ts
  FROM VALUES ('ACME', 10.5, 3), ('ACME', 10.7, 9), ('ACME', 10.6, 90), ('INIT', 99.0, 1), ('INIT', 98.5, 8), ('ACME', 11.0, 300)
    AS trades(sym, price, second);
INSERT OVERWRITE DIRECTORY 'data/quotes' USING parquet
  SELECT sym, CAST(bid AS DECIMAL(3, 1)) AS bid, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, 0, second) AS ts
  FROM VALUES ('ACME', 10.4, 1), ('ACME', 10.6, 9), ('ACME', 10.8, 10), ('INIT', 98.0, 2), ('INIT', 98.2, 7), ('ACME', 11.1, 290)
    AS quotes(sym, bid, second);

CREATE OR REPLACE STREAM trades (sym STRING, price DECIMAL(3, 1), ts TIMESTAMP)
USING parquet OPTIONS (path 'data/trades') WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE OR REPLACE STREAM quotes (sym STRING, bid DECIMAL(3, 1), ts TIMESTAMP)
USING parquet OPTIONS (path 'data/quotes') WATERMARK ts DELAY OF INTERVAL 1 MINUTE;

CREATE OR REPLACE SINK priced USING parquet OPTIONS (path 'out/priced');
CREATE OR REPLACE SINK around USING parquet OPTIONS (path 'out/around');

-- Each trade with the last quote of the minute before it. It comes once the watermark of the quotes has passed it,
-- so the last trade still waits here.
INSERT INTO priced
SELECT T.sym, T.ts, T.price, Q.bid, T.ts - Q.ts AS age
FROM trades T LEFT ASOF JOIN quotes Q MATCH_CONDITION (T.ts >= Q.ts) ON T.sym = Q.sym
WINDOW (T, Q) = 1 MINUTE;

-- Each trade with the nearest quote on either side.
INSERT INTO around
SELECT T.sym, T.ts, T.price, Q.bid, Q.ts AS quoted
FROM trades T ASOF JOIN quotes Q MATCH_CONDITION (NEAREST) ON T.sym = Q.sym
WINDOW (T, Q) = 1 MINUTE;

SELECT * FROM parquet.`out/priced` ORDER BY sym, ts;
SELECT * FROM parquet.`out/around` ORDER BY sym, ts;
