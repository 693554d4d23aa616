SELECT *
FROM camera1 A, camera2 B, camera3 C
WINDOW (A, B, C) = 5 SECONDS
