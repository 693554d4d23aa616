SELECT A.obj_id FROM camera1 A, camera2 B, camera3 C WINDOW (A, B) = 5 s AND (WINDOW (B, C) = 5 s OR DWINDOW (A, B) = 1 s)
