SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s AND WINDOW A = 10 ROWS WHERE A.obj_id = B.obj_id AND B.frame = C.frame
