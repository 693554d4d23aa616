-- Results by the time of their commit: all, those of the last hour, those that were there an hour ago.
--   wjoin run examples/17_results.sql --once --checkpoint examples/out/checkpoints
-- It writes its input and output into data/ and out/ beside this file; remove both before you run it again.
INSERT OVERWRITE DIRECTORY 'data/orders' USING parquet
  SELECT id AS order_id, TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, id) AS ts FROM range(5);
INSERT OVERWRITE DIRECTORY 'data/payments' USING parquet
  SELECT id AS order_id, 10 * id AS amount,
    TIMESTAMP '2024-05-01 12:00:00' + make_dt_interval(0, 0, 2 * id) AS ts FROM range(5);

CREATE OR REPLACE STREAM orders (order_id BIGINT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/orders') WATERMARK ts DELAY OF INTERVAL 10 MINUTES;
CREATE OR REPLACE STREAM payments (order_id BIGINT, amount BIGINT, ts TIMESTAMP)
USING parquet OPTIONS (path 'data/payments') WATERMARK ts DELAY OF INTERVAL 10 MINUTES;

-- Results of the last day are kept. Files of older ones stay an hour longer for those who read them.
CREATE OR REPLACE SINK paid_orders USING json OPTIONS (path 'out/paid_orders')
RETAIN 1 DAY GRACE 1 HOUR COMMIT EVERY 10 SECONDS;

INSERT INTO paid_orders
SELECT O.order_id, P.amount, P.ts AS paid_at FROM orders O, payments P
DWINDOW (O, P) = 1 HOUR WHERE O.order_id = P.order_id;

SELECT * FROM paid_orders ORDER BY order_id;
SELECT sum(amount) AS last_hour FROM paid_orders FOR COMMIT TIME BETWEEN (now() - INTERVAL 1 HOUR) AND (now());
SELECT count(*) AS an_hour_ago FROM paid_orders AS OF (now() - INTERVAL 1 HOUR) AS before;
