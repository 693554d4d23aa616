SELECT 1 FROM visits A, camera2 B WINDOW = 5 s
