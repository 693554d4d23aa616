SELECT * FROM camera1 A, camera2 B PATH (A, B)
