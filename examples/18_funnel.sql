-- Rows without a partner: a funnel with its drop-outs, by a LEFT and an ANTI JOIN of streams.
--   wjoin run examples/18_funnel.sql --once --checkpoint examples/out/checkpoints
-- It writes its input and output into data/ and out/ beside this file; remove both before you run it again.
INSERT OVERWRITE DIRECTORY 'data/orders' USING parquet
  SELECT id AS order_id, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 3 * (id DIV 100), id % 100) AS ts
  FROM VALUES (0), (1), (2), (3), (4), (100) AS orders(id);
INSERT OVERWRITE DIRECTORY 'data/payments' USING parquet
  SELECT id AS order_id, 10 * id AS amount,
    TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 3 * (id DIV 100), 2 * id % 100) AS ts
  FROM VALUES (0), (1), (3), (101) AS payments(id);

CREATE OR REPLACE STREAM orders (order_id INT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/orders') WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE OR REPLACE STREAM payments (order_id INT, amount INT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/payments') WATERMARK ts DELAY OF INTERVAL 10 MINUTES;

CREATE OR REPLACE SINK outcomes USING parquet OPTIONS (path 'out/outcomes');
CREATE OR REPLACE SINK unpaid USING json OPTIONS (path 'out/unpaid');

-- Each order, with its payment if one came within an hour. An order without one comes when no payment of its hour can
-- come any more: here the payments of three hours later say so. Of these hours nothing is decided yet.
INSERT INTO outcomes
SELECT O.order_id, P.amount, P.ts - O.ts AS took FROM orders O LEFT JOIN payments P ON O.order_id = P.order_id
WINDOW (O, P) BETWEEN 0 SECONDS AND 1 HOUR;

-- Whom to remind.
INSERT INTO unpaid
SELECT O.order_id FROM orders O LEFT ANTI JOIN payments P ON O.order_id = P.order_id
WINDOW (O, P) BETWEEN 0 SECONDS AND 1 HOUR;

SELECT * FROM parquet.`out/outcomes` ORDER BY order_id;
SELECT * FROM json.`out/unpaid` ORDER BY order_id;
