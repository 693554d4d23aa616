SELECT C.frame FROM camera1 A JOIN camera2 B ON A.obj_id = B.obj_id NATURAL JOIN camera3 C WINDOW = 5 SECONDS
