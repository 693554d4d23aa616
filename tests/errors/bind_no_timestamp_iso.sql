SELECT 1 FROM iso A, camera2 B WINDOW = 5 s
