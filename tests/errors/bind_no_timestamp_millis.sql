SELECT 1 FROM millis A, camera2 B WINDOW = 5 s
