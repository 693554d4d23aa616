SELECT A.obj_id FROM camera1 A, camera2 B WINDOW (A, B) = 1 s AND (WINDOW (A, B) BETWEEN 2 s AND 3 s OR WINDOW (B, A) BETWEEN 2 s AND 3 s)
