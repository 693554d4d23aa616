SELECT * FROM camera1 A WHERE EXISTS (SELECT B.nope FROM camera2 B WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id)
