SELECT * FROM A, B WINDOW (A, B) = 2 fortnights
