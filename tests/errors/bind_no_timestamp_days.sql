SELECT 1 FROM days A, camera2 B WINDOW = 5 s
