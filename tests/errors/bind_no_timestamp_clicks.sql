SELECT 1 FROM clicks A, camera2 B WINDOW = 5 s
