SELECT A.obj_id FROM camera1 A, camera2 B WINDOW (A, zebra) = 5 s
