SELECT A.obj_id FROM camera1 A, camera2 B WINDOW (A, B) = 5 s AND WINDOW A SINCE (A.obj_id > rand()) WHERE A.obj_id = B.obj_id
