SELECT A.obj_id FROM camera1 A, camera2 B WINDOW A = 10 ROWS PER HOME AND WINDOW (A, B) = 5 s WHERE A.obj_id = B.obj_id
