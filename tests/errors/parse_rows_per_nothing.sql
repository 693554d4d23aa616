SELECT A.obj_id FROM camera1 A, camera2 B WINDOW A = 3 ROWS PER AND WINDOW (A, B) = 5 s
