SELECT * FROM camera1 A WHERE EXISTS (SELECT * FROM camera2 B WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id AND nope > 1)
