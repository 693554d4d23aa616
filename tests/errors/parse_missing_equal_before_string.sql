SELECT * FROM A, B WINDOW (A, B) '5 seconds'
