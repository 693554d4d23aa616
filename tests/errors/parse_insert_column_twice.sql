INSERT INTO tracked (a, b, A) SELECT A.x, B.x, B.y FROM A, B WINDOW = 5 SECONDS
