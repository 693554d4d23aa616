SELECT A.frame, B.frame FROM camera1 A, camera2 B WINDOW = 5 s ORDER BY frame
