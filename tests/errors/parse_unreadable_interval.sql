SELECT * FROM A, B WINDOW (A, B) = INTERVAL '5 seconds and a bit'
