SELECT 1 FROM floats A, camera2 B WINDOW = 5 s
