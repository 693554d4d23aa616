-- Form 2: a window of its own for each pair.
CREATE OR REPLACE TEMPORARY VIEW orders AS SELECT * FROM VALUES
  (10, TIMESTAMP '2024-05-01 09:00:00'),
  (11, TIMESTAMP '2024-05-01 09:05:00') AS rows(order_id, ordered);
CREATE OR REPLACE TEMPORARY VIEW payments AS SELECT * FROM VALUES
  (10, TIMESTAMP '2024-05-01 09:20:00'),
  (11, TIMESTAMP '2024-05-01 11:00:00') AS rows(order_id, paid);
CREATE OR REPLACE TEMPORARY VIEW parcels AS SELECT * FROM VALUES
  (10, TIMESTAMP '2024-05-02 08:00:00'),
  (11, TIMESTAMP '2024-05-01 12:00:00') AS rows(order_id, sent);

-- DWINDOW is directed: the order comes first. BETWEEN gives both bounds of the difference.
SELECT O.order_id, P.paid, S.sent
FROM orders AS O, payments AS P, parcels AS S
DWINDOW (O, P) = 1 HOUR AND WINDOW (P, S) BETWEEN -10 MINUTES AND 2 DAYS AND WINDOW (O, S) = 1 DAY
WHERE O.order_id = P.order_id AND O.order_id = S.order_id
ORDER BY O.order_id;
