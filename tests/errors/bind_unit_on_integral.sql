SELECT A.v FROM ticks A, ticks B WINDOW (A, B) = 5 SECONDS
