SELECT A.obj_id FROM camera1 A, camera2 B WINDOW A = 10 ROWS PER KEY AND WINDOW (A, B) = 5 s WHERE A.obj_id < B.obj_id
