SELECT 1 FROM camera1 A, camera2 a WINDOW = 5 s
