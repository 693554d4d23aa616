-- Statement sets: several queries over the same streams as one, with one scan, one shuffle and one state.
--   wjoin run examples/16_statement_set.sql --once --checkpoint examples/out/checkpoints
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

CREATE OR REPLACE SINK paid USING parquet OPTIONS (path 'out/paid');
CREATE OR REPLACE SINK late_and_large USING json OPTIONS (path 'out/late_and_large');

EXECUTE STATEMENT SET shop BEGIN
  -- Which orders were paid within an hour?
  INSERT INTO paid
  SELECT O.order_id, P.amount FROM orders O, payments P DWINDOW (O, P) = 1 HOUR WHERE O.order_id = P.order_id;

  -- Which were paid two minutes later or more, and more than 20?
  INSERT INTO late_and_large
  SELECT P.order_id, P.amount, P.ts AS paid_at FROM payments P, orders O
  WINDOW (O, P) BETWEEN 2 MINUTES AND 1 HOUR
  WHERE P.order_id = O.order_id AND P.amount > 20;
END;

SELECT * FROM parquet.`out/paid` ORDER BY order_id;
SELECT order_id, amount, paid_at FROM json.`out/late_and_large` ORDER BY order_id;
