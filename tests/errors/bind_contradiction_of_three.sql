SELECT A.obj_id FROM camera1 A, camera2 B, camera3 C WINDOW (A, B) BETWEEN 1 s AND 2 s AND WINDOW (B, C) BETWEEN 1 s AND 2 s AND DWINDOW (C, A) = 1 hour
