SELECT 1 FROM declared_badly A, camera2 B WINDOW = 5 s
