SELECT A.x FROM twice A, camera2 B WINDOW = 5 s
