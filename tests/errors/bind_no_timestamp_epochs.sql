SELECT 1 FROM epochs A, camera2 B WINDOW = 5 s
