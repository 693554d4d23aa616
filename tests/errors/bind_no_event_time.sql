SELECT 1 FROM words A, camera2 B WINDOW = 5 s
