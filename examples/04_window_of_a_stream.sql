-- A window of one stream: how old its row may be when the last row of the result comes.
CREATE OR REPLACE TEMPORARY VIEW clicks AS SELECT * FROM VALUES
  ('ann', TIMESTAMP '2024-05-01 12:00:00'),
  ('bob', TIMESTAMP '2024-05-01 12:00:00') AS rows(who, ts);
CREATE OR REPLACE TEMPORARY VIEW buys AS SELECT * FROM VALUES
  ('ann', TIMESTAMP '2024-05-01 12:09:00'),
  ('bob', TIMESTAMP '2024-05-01 12:11:00'),
  ('bob', TIMESTAMP '2024-05-01 11:59:00') AS rows(who, ts);

-- A click counts for 10 minutes, a purchase for 30 seconds.
SELECT C.who, C.ts AS clicked, B.ts AS bought
FROM clicks AS C, buys AS B
WINDOW C = 10 MINUTES AND WINDOW B = 30 SECONDS
WHERE C.who = B.who
ORDER BY C.who;
