SELECT A.obj_id FROM camera1 A, camera2 B WINDOW A = 0 ROWS PER KEY AND WINDOW (A, B) = 5 s
