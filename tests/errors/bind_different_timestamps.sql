SELECT 1 FROM camera1 A, plant B WINDOW = 5 s
