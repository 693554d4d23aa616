SELECT * FROM A, B WINDOW (A, B) = 'a while'
