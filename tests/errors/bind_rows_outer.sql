SELECT A.obj_id FROM camera1 A LEFT JOIN camera2 B ON A.obj_id = B.obj_id WINDOW A = 10 ROWS AND WINDOW (A, B) = 5 s
