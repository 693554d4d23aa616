SELECT 1 FROM camera1 A, ticks B WINDOW = 5 s
