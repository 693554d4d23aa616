SELECT A.frame, C.frame FROM camera1 A, camera3 C WHERE A.obj_id = C.obj_id AND EXISTS (SELECT * FROM camera2 B WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id)
