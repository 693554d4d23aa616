SELECT * FROM VALUES (1, now()), (2, now()), A WINDOW = 5 SECONDS
