CREATE STREAM s (a INT) USING kafka OPTIONS (subscribe 's') FORMAT JSON KEY (a)
