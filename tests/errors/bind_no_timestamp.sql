SELECT 1 FROM counts A, ticks B WINDOW = 5
