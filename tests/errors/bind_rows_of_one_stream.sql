SELECT A.frame FROM camera1 A, camera2 B WINDOW A = 10 ROWS WHERE A.obj_id = B.obj_id
